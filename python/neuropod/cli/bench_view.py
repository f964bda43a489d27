"""What `neuropod bench` shows."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from neuropod.cli.output import print_table, print_text
from neuropod.problem_api import shape_text

if TYPE_CHECKING:
    from neuropod.cli.bench import BenchResult
    from neuropod.cli.measurement import Measurement

_UNITS: Final = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))
_LATENCIES: Final = ("mean", "p50", "p90", "p95", "p99", "max")


def time_unit(seconds: float) -> tuple[float, str]:
    """The unit to show a time of about `seconds` in: its length in seconds, and its name."""
    return next((unit for unit in _UNITS if seconds >= unit[0]), _UNITS[-1])


def package_labels(results: "Sequence[BenchResult]") -> list[str]:
    """Names that tell packages apart: the models', or those of the files, or the paths."""
    names = [result.name for result in results]
    files = [Path(result.path).name for result in results]
    for labels in (names, files):
        if len(set(labels)) == len(labels):
            return labels
    return [result.path for result in results]


def print_results(results: "Sequence[BenchResult]") -> None:
    for result in results:
        _print_heading(result)
    measured = [
        (label, run)
        for label, result in zip(package_labels(results), results, strict=True)
        for run in result.runs
        if run.calls
    ]
    _print_table(measured, several=len(results) > 1)
    if not all(run.complete for _, run in measured):
        print_text("interrupted: the last line is of the calls that had ended")


def _print_table(measured: "Sequence[tuple[str, Measurement]]", several: bool) -> None:
    """A line per measurement; of several packages with their names, and compared with the first line."""
    first = measured[0][1].latency()["p50"]
    length, unit = time_unit(min(run.latency()["p50"] for _, run in measured))
    columns = ["threads", "calls", "calls/s", *_LATENCIES, "CPU per call", "new blocks per call"]
    rows = [_row(run, length) for _, run in measured]
    if several:
        columns = ["package", *columns, "p50 ratio"]
        rows = [
            [label, *row, f"{run.latency()['p50'] / first:.2f}"]
            for (label, run), row in zip(measured, rows, strict=True)
        ]
    print_table(f"latency in {unit}", columns, rows, [c for c in columns if c != "package"])


def _print_heading(result: "BenchResult") -> None:
    shapes = ", ".join(
        f"{name} {shape_text(list(shape))}" for name, shape in result.input_shapes.items()
    )
    print_text(f"{result.name} ({result.platform}, {result.path})")
    print_text(f"  inputs: {shapes or 'none'} from {_SOURCES[result.inputs_from]}")
    print_text(
        f"  loaded in {_duration(result.load_seconds)}, "
        f"first call {_duration(result.first_call_seconds)}"
    )


_SOURCES: Final = {
    "files": "files",
    "test data": "the package's test data",
    "random": "a generator of random numbers",
}


def _row(run: "Measurement", length: float) -> list[str]:
    latency = run.latency()
    return [
        str(run.threads),
        f"{run.calls:,}",
        figure(run.calls_per_second),
        *(figure(latency[name] / length) for name in _LATENCIES),
        figure(run.cpu_seconds / run.calls / length),
        figure(run.new_blocks / run.calls),
    ]


def figure(value: float) -> str:
    """Three digits or so, never an exponent."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _duration(seconds: float) -> str:
    length, unit = time_unit(seconds)
    return f"{figure(seconds / length)} {unit}"


def as_dict(result: "BenchResult") -> dict[str, Any]:
    """As `--json` prints it; times in seconds."""
    return {
        "path": result.path,
        "name": result.name,
        "platform": result.platform,
        "inputs_from": result.inputs_from,
        "inputs": {name: list(shape) for name, shape in result.input_shapes.items()},
        "load_seconds": result.load_seconds,
        "first_call_seconds": result.first_call_seconds,
        "runs": [
            {
                "threads": run.threads,
                "calls": run.calls,
                "seconds": run.seconds,
                "calls_per_second": run.calls_per_second,
                "latency_seconds": run.latency(),
                "cpu_seconds": run.cpu_seconds,
                "new_blocks": run.new_blocks,
                "reused_blocks": run.reused_blocks,
                "complete": run.complete,
            }
            for run in result.runs
        ],
    }
