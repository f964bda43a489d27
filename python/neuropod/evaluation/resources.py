"""What a package costs: latency, throughput, memory and CPU time."""

import re
import resource
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np

from neuropod.packaging.arrays import Array

PERCENTILES: Final = (50, 90, 99)
_PEAK = re.compile(r"^VmHWM:\s+(\d+) kB$", re.MULTILINE)


@dataclass(frozen=True)
class Latency:
    """Of calls. Seconds; `samples` holds each call that was measured."""

    samples: Array = field(repr=False)
    rows: int

    @property
    def calls(self) -> int:
        return len(self.samples)

    @property
    def mean(self) -> float:
        return float(self.samples.mean())

    def percentile(self, percent: float) -> float:
        return float(np.percentile(self.samples, percent))

    @property
    def throughput(self) -> float:
        """Rows a second, of one caller."""
        return float(self.rows / self.samples.sum())


@dataclass(frozen=True)
class Resources:
    """Of one package in a process of its own.

    cpu_seconds: of all its threads, in the calls of one pass over the data.
    peak_memory: bytes, the largest resident memory of the whole process, interpreter and framework
    included. load_seconds: from the start of loading to the first call.
    """

    latency: Latency
    load_seconds: float
    cpu_seconds: float
    peak_memory: int


def peak_memory() -> int:
    """The largest resident memory of this process so far, in bytes."""
    try:
        match = _PEAK.search(Path("/proc/self/status").read_text())
    except OSError:
        match = None  # no /proc in here
    if match:
        return int(match[1]) * 1024
    # The second choice: its maximum is inherited from the process that started this one.
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def latency_of(nanoseconds: Sequence[int], rows: int) -> Latency:
    """Of calls that together took `rows` rows."""
    return Latency(np.asarray(nanoseconds, np.float64) / 1e9, rows)
