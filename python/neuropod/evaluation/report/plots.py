"""The pictures of the pages."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from neuropod.evaluation.report.svg import Drawing, finite_range, linear, short, ticks
from neuropod.packaging.arrays import Array

_WIDTH = 760.0
_NAME_WIDTH = 190.0
_ROW = 34.0
_TOP, _AXIS = 10.0, 30.0
_NAME_CHARACTERS = 23
_BINS = 48


@dataclass(frozen=True)
class Dot:
    """A value with its interval, and the text beside it."""

    name: str
    value: float
    low: float
    high: float
    text: str


def intervals(title: str, dots: Sequence[Dot]) -> str:
    """A row for each package: its value as a dot, its interval as a line."""
    right = _WIDTH - 190
    drawing = Drawing(_WIDTH, _TOP + _ROW * len(dots) + _AXIS, title)
    low, high = finite_range([v for dot in dots for v in (dot.value, dot.low, dot.high)])
    scale = linear(low, high, _NAME_WIDTH, right)
    _axis(drawing, low, high, scale, lambda v: f"{v:g}")
    for index, dot in enumerate(dots):
        y = _TOP + _ROW * (index + 0.5)
        css = f"series{index % 2}"
        drawing.text(_NAME_WIDTH - 12, y + 4, short(dot.name, _NAME_CHARACTERS), "name", "end")
        drawing.text(right + 12, y + 4, dot.text, "value")
        if not math.isfinite(dot.value):
            continue
        title = f"{dot.name}: {dot.text}"
        if math.isfinite(dot.low):
            drawing.line(scale(dot.low), y, scale(dot.high), y, f"whisker {css}", title)
            for end in (dot.low, dot.high):
                drawing.line(scale(end), y - 5, scale(end), y + 5, f"whisker {css}")
        drawing.circle(scale(dot.value), y, 5.5, f"dot {css}", title)
    return str(drawing)


@dataclass(frozen=True)
class Bar:
    name: str
    value: float
    text: str


def bars(title: str, given: Sequence[Bar]) -> str:
    """A bar from zero for each package."""
    right = _WIDTH - 110
    drawing = Drawing(_WIDTH, _TOP + _ROW * len(given), title)
    scale = linear(0, max((bar.value for bar in given), default=1.0) or 1.0, _NAME_WIDTH, right)
    for index, bar in enumerate(given):
        y = _TOP + _ROW * index
        drawing.text(_NAME_WIDTH - 12, y + 20, short(bar.name, _NAME_CHARACTERS), "name", "end")
        width = scale(bar.value) - _NAME_WIDTH
        drawing.rectangle(_NAME_WIDTH, y + 6, width, 18, f"bar series{index % 2}", bar.text)
        drawing.text(scale(bar.value) + 10, y + 20, bar.text, "value")
    return str(drawing)


def histogram(
    title: str,
    series: Sequence[tuple[str, Array]],
    unit: str,
    axis_text: Callable[[float], str] = "{:g}".format,
    size: tuple[float, float] = (_WIDTH, 276.0),
) -> str:
    """How often values occur, one or two series over the same bins; the median as a dashed line."""
    left, right, top, bottom = 44.0, size[0] - 16, 34.0, size[1] - 46
    drawing = Drawing(*size, title)
    low, high = finite_range([float(v) for _, values in series for v in _ends(values)], 0.02)
    edges = np.linspace(low, high, _BINS + 1)
    counts = [np.histogram(values, edges)[0] for _, values in series]
    most = max((int(count.max()) for count in counts), default=1) or 1
    x, y = linear(low, high, left, right), linear(0, most, bottom, top)
    for tick in ticks(0, most, 4):
        drawing.line(left, y(tick), right, y(tick), "grid")
        drawing.text(left - 8, y(tick) + 4, f"{tick:g}", "tick", "end")
    legend = left + 6
    for index, ((name, values), count) in enumerate(zip(series, counts, strict=True)):
        css = f"series{index}"
        for first, last, height in zip(edges[:-1], edges[1:], count.tolist(), strict=True):
            if height:
                width = x(float(last)) - x(float(first)) - 0.5
                label = f"{axis_text(float(first))} to {axis_text(float(last))}: {height}"
                drawing.rectangle(
                    x(float(first)), y(height), width, bottom - y(height), f"area {css}", label
                )
        if name:
            middle = float(np.median(values)) if len(values) else math.nan
            if math.isfinite(middle):
                drawing.line(x(middle), top, x(middle), bottom, f"median {css}")
            drawing.rectangle(legend, 8, 12, 12, f"bar {css}")
            text = short(f"{name}, median {axis_text(middle)}", 48)
            drawing.text(legend + 18, 18, text, "value")
            legend += 7.4 * len(text) + 46
    for tick in ticks(low, high, int(size[0] / 125)):
        drawing.text(x(tick), bottom + 18, axis_text(tick), "tick", "middle")
    drawing.line(left, bottom, right, bottom, "axis")
    drawing.text(right, bottom + 38, unit, "tick", "end")
    return str(drawing)


def scatter(title: str, pairs: Array, names: tuple[str, str]) -> str:
    """A against B, (n, 2); on the line they are equal."""
    size, left, top = 330.0, 62.0, 26.0
    drawing = Drawing(left + size + 16, top + size + 48, title)
    low, high = finite_range([float(v) for v in (*_ends(pairs[:, 0]), *_ends(pairs[:, 1]))])
    x, y = linear(low, high, left, left + size), linear(low, high, top + size, top)
    for tick in ticks(low, high, 5):
        drawing.line(left, y(tick), left + size, y(tick), "grid")
        drawing.line(x(tick), top, x(tick), top + size, "grid")
        drawing.text(left - 8, y(tick) + 4, f"{tick:g}", "tick", "end")
        drawing.text(x(tick), top + size + 18, f"{tick:g}", "tick", "middle")
    drawing.line(x(low), y(low), x(high), y(high), "median series1")
    for a, b in pairs.tolist():
        drawing.circle(x(a), y(b), 2.6, "point")
    drawing.text(left + size, top + size + 38, f"A: {short(names[0], 34)}", "tick", "end")
    drawing.text(left, top - 12, f"B: {short(names[1], 34)}", "tick")
    return str(drawing)


def _axis(
    drawing: Drawing,
    low: float,
    high: float,
    scale: Callable[[float], float],
    text: Callable[[float], str],
) -> None:
    bottom = drawing.height - _AXIS
    for tick in ticks(low, high):
        drawing.line(scale(tick), _TOP - 4, scale(tick), bottom + 2, "grid")
        drawing.text(scale(tick), bottom + 18, text(tick), "tick", "middle")


def _ends(values: Array) -> tuple[float, ...]:
    return (float(values.min()), float(values.max())) if len(values) else ()
