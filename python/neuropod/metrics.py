"""What the models of this process have done: for one model (`Neuropod.stats`), for Prometheus
(`metrics_text`), and call by call for a system of the host's own (`set_metrics_callback`).

docs/metrics.md explains each figure.
"""

from collections.abc import Callable
from typing import NotRequired, TypedDict


class LatencyStats(TypedDict):
    """How long calls, or one part of them, took. Quantiles are within 7 %."""

    count: int
    total_seconds: float
    mean_seconds: float
    p50_seconds: float
    p95_seconds: float
    p99_seconds: float
    max_seconds: float
    up_to: dict[float, int]
    """By bound in seconds: how many took at most so long. Bounds below all, and above all but the
    first, are left out."""


class LatencyByPart(TypedDict):
    """The calls that succeeded: as a whole, and each part."""

    total: LatencyStats
    checks: LatencyStats
    sealing: LatencyStats
    framework: LatencyStats
    outputs: LatencyStats
    queue: NotRequired[LatencyStats]
    """Until a worker began the call: of a model in a process of its own, as the next."""
    transport: NotRequired[LatencyStats]


class ModelStats(TypedDict):
    """What `Neuropod.stats()` returns: counts since the model was loaded."""

    collected: bool
    calls: int
    calls_in_flight: int
    errors: dict[str, int]
    latency: LatencyByPart
    input_bytes: int
    output_bytes: int
    copied_bytes: int
    cpu_seconds: float
    load_seconds: float
    allocator: dict[str, int]
    worker_deaths: NotRequired[int]
    """Of a model in a process of its own, as the next."""
    worker_restarts: NotRequired[int]


class CallRecord(TypedDict):
    """One call, as the callback of `set_metrics_callback` gets it. A part that wasn't reached is 0."""

    model: str
    platform: str
    load_id: int
    error: str | None
    total_seconds: float
    checks_seconds: float
    sealing_seconds: float
    framework_seconds: float
    outputs_seconds: float
    queue_seconds: float
    """0 for a model in this process, as the next."""
    transport_seconds: float
    input_bytes: int
    output_bytes: int
    copied_bytes: int


def metrics_text() -> str:
    """All loaded models of this process that collect metrics, and the loads that failed, in
    Prometheus' text exposition format (its content type: `text/plain; version=0.0.4;
    charset=utf-8`). A freed model's series are gone."""
    from neuropod import _native

    return _native.metrics_text()


def set_metrics_callback(callback: Callable[[CallRecord], object] | None) -> None:
    """Has `callback` told of each finished call of every model that collects metrics; None ends it.

    There is one for the whole process; the last one counts. It runs on the thread of the call before
    `infer` returns, so its time is added to each call: hand the record to a queue. Calls that it
    makes itself aren't told of. What it raises is dropped, and logged the first time. While the
    interpreter ends it isn't called.
    """
    from neuropod import _native

    _native.set_metrics_callback(callback)  # type: ignore[arg-type]
