"""Runs packages on prepared data, each in a fresh process of its own.

A process of its own makes peak memory and CPU time the package's, lets two versions of a framework
stand in one table, and leaves the others unharmed when a model crashes.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from neuropod.evaluation.columns import Column, columns_from_json, columns_to_json
from neuropod.evaluation.prepared import PreparedData
from neuropod.evaluation.progress import Progress
from neuropod.evaluation.resources import Resources, latency_of
from neuropod.evaluation.worker_process import PackageFailedError, WorkerProcess

WARM_UP_CALLS: Final = 3
# Percentiles of a handful of calls say nothing: short data are run again, for so long at most.
_ENOUGH_CALLS: Final = 100
_EXTRA_SECONDS: Final = 2.0
_REQUEST_SECONDS: Final = 0.1
_MOST_CALLS_AT_ONCE: Final = 256


@dataclass(frozen=True)
class RunSettings:
    """`outputs`: those to compute. `load_options`: of load_neuropod."""

    outputs: Sequence[str]
    batch_size: int
    load_options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class PackageRun:
    """What one package returned for all rows, and what it cost."""

    platform: str
    batch_symbol: str | None
    outputs: dict[str, Column]
    resources: Resources


class RunningPackage:
    """A package loaded in its process, and what has been measured of it so far."""

    def __init__(
        self, process: WorkerProcess, path: Path, data: PreparedData, settings: RunSettings
    ) -> None:
        self._process = process
        self._path = path
        self._data = data
        loaded = process.load(
            str(path),
            settings.load_options,
            columns=columns_to_json(data.inputs),
            outputs=list(settings.outputs),
            batch_size=settings.batch_size,
        )
        self.calls: int = loaded["calls"]
        self.platform: str = loaded["platform"]
        self.batch_symbol: str | None = loaded["batch_symbol"]
        self._load_seconds: float = loaded["load_seconds"]
        self._nanoseconds: list[int] = []
        self._rows = 0
        self._cpu_seconds = 0.0

    def warm_up(self) -> None:
        """Runs a few calls that don't count. Raises PackageFailedError."""
        try:
            self._process.request("warm_up", times=WARM_UP_CALLS)
        except PackageFailedError as error:
            raise self._named(error) from error

    @property
    def measured(self) -> int:
        """Calls that were measured."""
        return len(self._nanoseconds)

    def run(self, first: int, last: int, keep: bool) -> int:
        """Runs calls [first, last); returns how many rows they took. Raises PackageFailedError."""
        try:
            done = self._process.request("run", first=first, last=last, keep=keep)
        except PackageFailedError as error:
            raise self._named(error) from error
        self._nanoseconds += done["nanoseconds"]
        self._rows += done["rows"]
        if keep:
            self._cpu_seconds += done["cpu_seconds"]
        return int(done["rows"])

    def _named(self, error: PackageFailedError) -> PackageFailedError:
        """The error with the rows that the call took."""
        text = str(error)
        if error.rows is not None:
            start, stop = error.rows
            last = f" to {self._data.where(stop - 1)}" if stop - start > 1 else ""
            text = f"{self._data.where(start)}{last}: {text}"
        return PackageFailedError(text, error.code, error.rows, self._path)

    def finish(self) -> PackageRun:
        done = self._process.request("finish")
        resources = Resources(
            latency_of(self._nanoseconds, self._rows),
            self._load_seconds,
            self._cpu_seconds,
            done["peak_memory"],
        )
        outputs = columns_from_json(done["columns"])
        return PackageRun(self.platform, self.batch_symbol, outputs, resources)


def run_package(
    path: Path, data: PreparedData, settings: RunSettings, folder: Path, progress: Progress
) -> PackageRun:
    """Runs one package on all rows. Its outputs stay in `folder`. Raises PackageFailedError."""
    with WorkerProcess(folder) as process, progress.task(path.name, data.count) as advance:
        package = RunningPackage(process, path, data, settings)
        package.warm_up()
        _run_all([package], keep=True, advance=advance)
        _run_more([package])
        return package.finish()


def run_pair(
    paths: tuple[Path, Path],
    data: PreparedData,
    settings: RunSettings,
    folders: tuple[Path, Path],
    progress: Progress,
) -> tuple[PackageRun, PackageRun]:
    """Runs two packages side by side, taking turns, so that what disturbs the machine hits both."""
    with (
        WorkerProcess(folders[0]) as first,
        WorkerProcess(folders[1]) as second,
        progress.task(f"{paths[0].name} and {paths[1].name}", 2 * data.count) as advance,
    ):
        pair = []
        for process, path in zip((first, second), paths, strict=True):
            try:
                package = RunningPackage(process, path, data, settings)
                package.warm_up()
            except PackageFailedError as error:
                raise PackageFailedError(f"{path}: {error}", error.code) from error
            pair.append(package)
        try:
            _run_all(pair, keep=True, advance=advance)
            _run_more(pair)
        except PackageFailedError as error:
            raise PackageFailedError(f"{error.package}: {error}", error.code) from error
        return pair[0].finish(), pair[1].finish()


def _run_all(packages: Sequence[RunningPackage], keep: bool, advance: Any) -> None:
    """One pass over the data, the packages taking turns; who begins changes."""
    positions = [0] * len(packages)
    step, turn = 1, 0
    while any(p < package.calls for p, package in zip(positions, packages, strict=True)):
        start = time.perf_counter()
        order = range(len(packages)) if turn % 2 == 0 else reversed(range(len(packages)))
        for index in order:
            package = packages[index]
            last = min(positions[index] + step, package.calls)
            if positions[index] < last:
                advance(package.run(positions[index], last, keep))
            positions[index] = last
        step = _next_step(step, time.perf_counter() - start, len(packages))
        turn += 1


def _run_more(packages: Sequence[RunningPackage]) -> None:
    """Further passes, for the measurement only, until there are enough calls or time is up."""
    end = time.perf_counter() + _EXTRA_SECONDS * len(packages)
    position, turn = 0, 0
    while any(p.measured < _ENOUGH_CALLS for p in packages) and time.perf_counter() < end:
        order = packages if turn % 2 == 0 else list(reversed(packages))
        for package in order:
            package.run(position % package.calls, position % package.calls + 1, False)
        position += 1
        turn += 1


def _next_step(step: int, seconds: float, packages: int) -> int:
    """Fewer, larger requests while calls are short; often enough to show progress and take turns."""
    wished = int(step * _REQUEST_SECONDS * packages / max(seconds, 1e-6))
    limit = _MOST_CALLS_AT_ONCE if packages == 1 else 8
    return max(1, min(wished, 2 * step, limit))
