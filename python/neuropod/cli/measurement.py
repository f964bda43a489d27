"""Measuring calls of a model from several threads."""

import threading
import time
from array import array
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from neuropod.cli.exit_codes import UsageError

if TYPE_CHECKING:
    from neuropod.executor import Neuropod
    from neuropod.packaging.arrays import Array

PERCENTILES: Final = (50, 90, 95, 99)
_MAX_CALLS_OF_A_THREAD: Final = 10_000_000
_WARM_UP_CALLS: Final = 10
_WARM_UP_SECONDS: Final = 0.5
_PATIENCE_SECONDS: Final = 0.5
"""How long an interrupted measurement waits for the calls that are under way."""


@dataclass(frozen=True)
class Load:
    """What is measured.

    Each of `threads` threads calls the model, one call after the other, for `seconds` or, if `calls` is
    given, that often. Before that it makes `warm_up` calls; None: up to ten, or half a second.
    """

    threads: int
    seconds: float
    calls: int | None
    warm_up: int | None


@dataclass(frozen=True)
class Measurement:
    """What came of it."""

    threads: int
    latencies: "Array"
    """Seconds of each call, ascending."""

    seconds: float
    cpu_seconds: float
    """Of the whole process, all threads."""

    new_blocks: int
    """Blocks of memory for inputs and outputs that came from the system."""

    reused_blocks: int
    complete: bool
    """False: it was interrupted, and these are the calls that had ended."""

    has_stuck_calls: bool
    """Calls still ran when it was given up."""

    @property
    def calls(self) -> int:
        return int(self.latencies.size)

    @property
    def calls_per_second(self) -> float:
        return self.calls / self.seconds if self.seconds else 0.0

    def latency(self) -> dict[str, float]:
        """Seconds: mean, p50, p90, p95, p99, min and max; empty if no call ended."""
        import numpy as np

        if not self.calls:
            return {}
        percentiles = np.percentile(self.latencies, PERCENTILES)
        return {
            "mean": float(self.latencies.mean()),
            **{f"p{p}": float(value) for p, value in zip(PERCENTILES, percentiles, strict=True)},
            "min": float(self.latencies[0]),
            "max": float(self.latencies[-1]),
        }


def measure(model: "Neuropod", inputs: Mapping[str, Any], load: Load) -> Measurement:
    """Calls the model under `load`. Every thread has inputs of its own.

    Raises the first error of any call, after all threads have ended. Ctrl-C ends it early, with what
    was measured so far.
    """
    callers = [_Caller(model, inputs, load) for _ in range(load.threads)]
    complete = True
    start, cpu_start, pool_start = time.perf_counter(), time.process_time(), model.allocator_stats
    try:
        _start(callers)
        for caller in callers:
            caller.warm.wait()
        start, cpu_start, pool_start = (
            time.perf_counter(),
            time.process_time(),
            model.allocator_stats,
        )
        for caller in callers:
            caller.go.set()
        _wait(callers, load)
        _stop(callers, None)
    except KeyboardInterrupt:
        complete = False
    seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu_start
    stuck = not complete and _stop(callers, _PATIENCE_SECONDS)
    pool = model.allocator_stats
    for caller in callers:
        if caller.error is not None:
            raise caller.error
    return Measurement(
        load.threads,
        _sorted_seconds(callers),
        seconds,
        cpu_seconds,
        pool["system_allocations"] - pool_start["system_allocations"],
        pool["reused"] - pool_start["reused"],
        complete,
        stuck,
    )


def _start(callers: list["_Caller"]) -> None:
    """Raises UsageError, after those that run have ended, if the system has no more threads."""
    for started, caller in enumerate(callers):
        try:
            caller.thread.start()
        except RuntimeError as error:
            _stop(callers, None)
            raise UsageError(
                f"--threads {len(callers)}: the system allows no more than {started}; "
                "limits of memory and of processes (`ulimit -a`) count"
            ) from error


class _Caller:
    """One thread of calls."""

    def __init__(self, model: "Neuropod", inputs: Mapping[str, Any], load: Load) -> None:
        self.warm = threading.Event()
        self.go = threading.Event()
        self.ended = threading.Event()
        self.error: BaseException | None = None
        self.nanoseconds = array("q")
        self.stopping = False
        self._model = model
        self._inputs = {
            name: value.copy() if hasattr(value, "copy") else value
            for name, value in inputs.items()
        }
        self._load = load
        # A daemon, so that a call that never ends can't keep the process alive.
        self.thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        try:
            self._warm_up()
            self.warm.set()
            self.go.wait()
            self._measure()
        except BaseException as error:  # raised again by measure()
            self.error = error
        finally:
            self.warm.set()
            self.ended.set()

    def _warm_up(self) -> None:
        exact = self._load.warm_up
        until = time.perf_counter() + _WARM_UP_SECONDS
        for i in range(_WARM_UP_CALLS if exact is None else exact):
            if self.stopping or (exact is None and i and time.perf_counter() > until):
                return
            self._model.infer(self._inputs)

    def _measure(self) -> None:
        infer, inputs, clock = self._model.infer, self._inputs, time.perf_counter_ns
        record = self.nanoseconds.append
        for _ in range(self._load.calls or _MAX_CALLS_OF_A_THREAD):
            if self.stopping:
                return
            start = clock()
            infer(inputs)
            record(clock() - start)


def _wait(callers: list[_Caller], load: Load) -> None:
    """Until the time is over, all calls are done, or one failed."""
    deadline = None if load.calls is not None else time.monotonic() + load.seconds
    while not any(caller.error for caller in callers):
        if all(caller.ended.is_set() for caller in callers):
            return
        left = 0.05 if deadline is None else min(0.05, deadline - time.monotonic())
        if left <= 0:
            return
        running = next(caller for caller in callers if not caller.ended.is_set())
        running.ended.wait(left)


def _stop(callers: list[_Caller], patience: float | None) -> bool:
    """Ends the threads after their calls; True if some call doesn't end within `patience` seconds."""
    for caller in callers:
        caller.stopping = True
        caller.go.set()
    deadline = None if patience is None else time.monotonic() + patience
    for caller in callers:
        if caller.thread.ident is not None:
            caller.thread.join(None if deadline is None else max(0.0, deadline - time.monotonic()))
    return any(caller.thread.is_alive() for caller in callers)


def _sorted_seconds(callers: list[_Caller]) -> "Array":
    import numpy as np

    # Copied by slices: a thread that is stuck in a call may still append.
    parts = [np.array(caller.nanoseconds[:], dtype=np.int64) for caller in callers]
    return np.sort(np.concatenate(parts)) / 1e9
