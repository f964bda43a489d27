"""The picture of `neuropod bench --plot`."""

import logging
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from neuropod.cli.bench_view import package_labels, time_unit
from neuropod.cli.exit_codes import UsageError
from neuropod.cli.writable import check_target, written_whole

if TYPE_CHECKING:
    from neuropod.cli.bench import BenchResult

_SUFFIXES: Final = (".png", ".svg")
_TICKS: Final = (0, 50, 90, 99, 99.9, 99.99, 99.999)
_POINTS: Final = 400
_DASHES: Final = ("-", "--", ":", "-.")


def check_plot_path(path: Path) -> None:
    """Raises UsageError if `draw` could not write there, or not draw at all."""
    import importlib.util

    if path.suffix.lower() not in _SUFFIXES:
        raise UsageError(f"--plot {path}: plots are saved as {' or '.join(_SUFFIXES)}")
    check_target("--plot", path)
    if importlib.util.find_spec("matplotlib") is None:
        raise UsageError("--plot takes matplotlib: `pip install 'neuropod[plots]'`")


def draw(results: "Sequence[BenchResult]", path: Path) -> None:
    """Latency by percentile; beside it throughput by threads, if there are several numbers of threads."""
    # Without a writable HOME it says at length that its cache of fonts is temporary.
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    from matplotlib.figure import Figure

    counts = sorted({run.threads for result in results for run in result.runs})
    columns = 2 if len(counts) > 1 else 1
    figure = Figure(figsize=(6.4 * columns, 4.2), dpi=150, layout="constrained")
    axes = figure.subplots(1, columns, squeeze=False)[0]
    _draw_latency(axes[0], results, counts)
    if columns == 2:
        _draw_throughput(axes[1], results, counts)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # characters of names that its font lacks
        with written_whole("--plot", path) as temporary:
            figure.savefig(temporary)


def _draw_latency(axes: Any, results: "Sequence[BenchResult]", counts: Sequence[int]) -> None:
    import numpy as np

    runs = [run for result in results for run in result.runs if run.calls]
    length, unit = time_unit(min(run.latency()["p50"] for run in runs))
    for i, (label, result) in enumerate(zip(_labels(results), results, strict=True)):
        for run in result.runs:
            if not run.calls:
                continue
            # Even steps on an axis of nines, as far as there are calls to tell them apart.
            nines = np.linspace(0, np.log10(run.calls), _POINTS)
            values = np.quantile(run.latencies, 1 - 10**-nines) / length
            style = _style(i, counts.index(run.threads), several_packages=len(results) > 1)
            label_parts = [label] if len(results) > 1 else []
            if len(counts) > 1:
                label_parts.append(f"{run.threads} thread{'s' if run.threads > 1 else ''}")
            axes.plot(nines, values, label=", ".join(label_parts) or None, linewidth=1.8, **style)
    most = max(run.calls for run in runs)
    ticks = [p for p in _TICKS if p <= 50 or 1 / (1 - p / 100) <= most * 1.001]
    axes.set_xticks([-np.log10(1 - p / 100) for p in ticks], [f"{p:g}" for p in ticks])
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter("{x:,g}")
    axes.yaxis.set_minor_formatter(_sparse_labels)
    axes.set(xlabel="percentile of calls", ylabel=f"latency [{unit}]")
    axes.set_title(
        f"{_labels(results)[0]}: latency" if len(results) == 1 else "latency",
        loc="left",
        fontsize=11,
    )
    axes.grid(alpha=0.3, which="both")
    axes.spines[["top", "right"]].set_visible(False)
    if len(runs) > 1:
        axes.legend(frameon=False)


def _labels(results: "Sequence[BenchResult]") -> list[str]:
    """Names as plain text: matplotlib takes what stands between dollar signs for a formula."""
    return [label.replace("$", r"\$") for label in package_labels(results)]


def _style(package: int, count: int, several_packages: bool) -> dict[str, str]:
    """A colour for each package and a dash for each number of threads; of one package, colours only."""
    if not several_packages:
        return {"color": f"C{count % 10}"}
    return {"color": f"C{package % 10}", "linestyle": _DASHES[count % len(_DASHES)]}


def _sparse_labels(value: float, _position: int) -> str:
    """Labels 2 and 5 between the powers of ten."""
    first_digit = f"{value:e}"[0]
    return f"{value:,g}" if first_digit in "25" else ""


def _draw_throughput(axes: Any, results: "Sequence[BenchResult]", counts: Sequence[int]) -> None:
    for label, result in zip(_labels(results), results, strict=True):
        runs = sorted((run for run in result.runs if run.calls), key=lambda run: run.threads)
        axes.plot(
            [run.threads for run in runs],
            [run.calls_per_second for run in runs],
            marker="o",
            label=label,
            linewidth=1.8,
        )
    axes.set_xticks(counts, [str(count) for count in counts])
    highest = max(run.calls_per_second for result in results for run in result.runs)
    axes.set_ylim(0, highest * 1.08)
    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.set(xlabel="calling threads", ylabel="calls per second")
    axes.set_title("throughput", loc="left", fontsize=11)
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    if len(results) > 1:
        axes.legend(frameon=False)
