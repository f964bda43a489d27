"""Draws the latency plot of the page, once for light and once for dark screens."""

import io
from dataclasses import dataclass

import matplotlib
import numpy as np
from latency import Latency
from matplotlib.axes import Axes
from matplotlib.figure import Figure


@dataclass(frozen=True)
class Palette:
    """Colours of one plot, as CSS writes them."""

    text: str
    muted: str
    direct: str
    neuropod: str


LIGHT = Palette(text="#1c2430", muted="#d5dae1", direct="#64748b", neuropod="#0f766e")
DARK = Palette(text="#e6eaf0", muted="#39424f", direct="#94a3b8", neuropod="#2dd4bf")


def _style(axes: Axes, palette: Palette, title: str, unit: str) -> None:
    axes.set_title(title, color=palette.text, fontsize=11, loc="left", pad=12)
    axes.set_xlabel(unit, color=palette.text)
    axes.tick_params(colors=palette.text, length=0)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(palette.muted)


def _distribution(axes: Axes, latency: Latency, palette: Palette) -> None:
    """Two histograms over the same bins, up to twice the larger median."""
    high = 2 * max(latency.direct_median_us, latency.neuropod_median_us)
    low = min(latency.direct_us.min(), latency.neuropod_us.min())
    bins = np.linspace(low, high, 60)
    ways = (
        ("direct", latency.direct_us, palette.direct),
        ("through Neuropod", latency.neuropod_us, palette.neuropod),
    )
    for label, values, colour in ways:
        median = float(np.median(values))
        axes.hist(values, bins, color=colour, alpha=0.35, histtype="stepfilled")
        axes.hist(values, bins, color=colour, histtype="step", linewidth=1.5)
        axes.axvline(median, color=colour, linewidth=1.2, linestyle=(0, (4, 3)))
        axes.plot([], [], color=colour, linewidth=4, label=f"{label}: median {median:.1f} µs")
    axes.set_ylabel("calls", color=palette.text)
    axes.legend(frameon=False, labelcolor=palette.text, loc="upper right")


def _runs(axes: Axes, latency: Latency, palette: Palette) -> None:
    """Every run as a dot, a row for each way, with the median as a bar."""
    ways = (
        ("direct", latency.direct_us, palette.direct, 1.0),
        ("through\nNeuropod", latency.neuropod_us, palette.neuropod, 0.0),
    )
    for _, values, colour, row in ways:
        milliseconds = values / 1000
        median = float(np.median(milliseconds))
        axes.plot(
            milliseconds, np.full(len(values), row), "o", color=colour, alpha=0.6, ms=8, mew=0
        )
        axes.plot([median, median], [row - 0.22, row + 0.22], color=colour, linewidth=2.5)
        axes.annotate(
            f"median {median:.0f} ms", (median, row + 0.3), color=colour, ha="center", fontsize=9.5
        )
    axes.set_ylim(-0.6, 1.7)
    axes.set_xlim(0, 1.12 * max(latency.direct_us.max(), latency.neuropod_us.max()) / 1000)
    axes.set_yticks([1, 0], [label for label, *_ in ways])


def draw(digits: Latency, detector: Latency, palette: Palette) -> bytes:
    """The plot as an SVG file with a transparent ground.

    Args:
        digits: one scan per call.
        detector: one photograph per call.
        palette: the colours.
    """
    with matplotlib.rc_context({"svg.fonttype": "path", "svg.hashsalt": "neuropod"}):
        figure = Figure(figsize=(10.5, 3.6), layout="constrained")
        left, right = figure.subplots(1, 2, width_ratios=[3, 2])
        _distribution(left, digits, palette)
        _style(left, palette, f"Digit network, one scan ({len(digits.direct_us)} calls each)", "µs")
        _runs(right, detector, palette)
        _style(right, palette, f"Face detector ({len(detector.direct_us)} calls each)", "ms")
        file = io.BytesIO()
        figure.savefig(file, format="svg", transparent=True, metadata={"Date": None})
        return file.getvalue()
