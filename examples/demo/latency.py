"""Measures two ways of doing the same thing, fairly: in turns, in one process."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class Latency:
    """How long each call took, in microseconds: float64 (rounds,) each."""

    direct_us: npt.NDArray[np.float64]
    neuropod_us: npt.NDArray[np.float64]

    @property
    def direct_median_us(self) -> float:
        """The median of the direct calls, in microseconds."""
        return float(np.median(self.direct_us))

    @property
    def neuropod_median_us(self) -> float:
        """The median of the calls through Neuropod, in microseconds."""
        return float(np.median(self.neuropod_us))


def _elapsed_us(call: Callable[[], object]) -> float:
    start = time.perf_counter_ns()
    call()
    return (time.perf_counter_ns() - start) / 1000


def measure(
    direct: Callable[[], object],
    through_neuropod: Callable[[], object],
    rounds: int,
    warm_up: int,
    budget_s: float,
) -> Latency:
    """Calls both in turns, so that whatever else the machine does hits both alike.

    Args:
        direct: runs the model without Neuropod.
        through_neuropod: runs the same model on the same input through Neuropod.
        rounds: calls of each that count, at most. Who goes first changes every round.
        warm_up: calls of each before those, not counted.
        budget_s: seconds after which no further round starts, once four have been made: a busy
            machine gives fewer figures, not a longer wait.
    """
    for _ in range(warm_up):
        direct()
        through_neuropod()
    direct_us: list[float] = []
    neuropod_us: list[float] = []
    deadline = time.monotonic() + budget_s
    for i in range(rounds):
        if i >= 4 and time.monotonic() > deadline:
            break
        if i % 2 == 0:
            direct_us.append(_elapsed_us(direct))
            neuropod_us.append(_elapsed_us(through_neuropod))
        else:
            neuropod_us.append(_elapsed_us(through_neuropod))
            direct_us.append(_elapsed_us(direct))
    return Latency(np.array(direct_us), np.array(neuropod_us))
