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
) -> Latency:
    """Calls both in turns, so that whatever else the machine does hits both alike.

    Args:
        direct: runs the model without Neuropod.
        through_neuropod: runs the same model on the same input through Neuropod.
        rounds: calls of each that count. Who goes first changes every round.
        warm_up: calls of each before those, not counted.
    """
    for _ in range(warm_up):
        direct()
        through_neuropod()
    direct_us = np.empty(rounds)
    neuropod_us = np.empty(rounds)
    for i in range(rounds):
        if i % 2 == 0:
            direct_us[i] = _elapsed_us(direct)
            neuropod_us[i] = _elapsed_us(through_neuropod)
        else:
            neuropod_us[i] = _elapsed_us(through_neuropod)
            direct_us[i] = _elapsed_us(direct)
    return Latency(direct_us, neuropod_us)
