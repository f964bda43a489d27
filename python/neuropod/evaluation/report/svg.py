"""A small drawing surface: SVG whose colours are the page's, so that it follows light and dark."""

import html
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

Scale = Callable[[float], float]


@dataclass
class Drawing:
    """Elements in pixels; the page scales the whole. `label` is what screen readers say."""

    width: float
    height: float
    label: str
    _parts: list[str] = field(default_factory=list)

    def line(
        self, x1: float, y1: float, x2: float, y2: float, css: str, title: str | None = None
    ) -> None:
        self._add("line", f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"', css, title)

    def circle(self, x: float, y: float, radius: float, css: str, title: str | None = None) -> None:
        self._add("circle", f'cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}"', css, title)

    def rectangle(
        self, x: float, y: float, width: float, height: float, css: str, title: str | None = None
    ) -> None:
        size = f'width="{max(width, 0):.1f}" height="{max(height, 0):.1f}"'
        self._add("rect", f'x="{x:.1f}" y="{y:.1f}" {size}', css, title)

    def text(self, x: float, y: float, text: str, css: str = "", anchor: str = "start") -> None:
        self._parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" class="{css}" text-anchor="{anchor}">'
            f"{html.escape(text)}</text>"
        )

    def __str__(self) -> str:
        return (
            f'<svg viewBox="0 0 {self.width:.0f} {self.height:.0f}" role="img" '
            f'aria-label="{html.escape(self.label, quote=True)}">{"".join(self._parts)}</svg>'
        )

    def _add(self, element: str, attributes: str, css: str, title: str | None) -> None:
        if title is None:
            self._parts.append(f'<{element} {attributes} class="{css}"/>')
        else:
            shown = f"<title>{html.escape(title)}</title>"
            self._parts.append(f'<{element} {attributes} class="{css}">{shown}</{element}>')


def linear(low: float, high: float, start: float, end: float) -> Scale:
    """Values from low to high as pixels from start to end."""
    span = high - low or 1.0
    return lambda value: start + (value - low) / span * (end - start)


def ticks(low: float, high: float, wanted: int = 5) -> list[float]:
    """Round numbers from low to high."""
    span = high - low
    if not math.isfinite(span) or span <= 0:
        return [low]
    rough = span / wanted
    magnitude = 10.0 ** math.floor(math.log10(rough))
    step = next(m * magnitude for m in (1, 2, 5, 10) if m * magnitude >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [round(i * step, 12) for i in range(first, last + 1)]


def short(text: str, characters: int) -> str:
    """The text, its middle left out where it's too long."""
    if len(text) <= characters:
        return text
    kept = characters - 1
    return text[: kept - kept // 2] + "…" + text[len(text) - kept // 2 :]


def finite_range(values: Sequence[float], margin: float = 0.06) -> tuple[float, float]:
    """Lowest and highest finite value with a margin; some range if there is none."""
    known = [value for value in values if math.isfinite(value)]
    if not known:
        return 0.0, 1.0
    low, high = min(known), max(known)
    space = (high - low) * margin or abs(high) * margin or 1.0
    return low - space, high + space
