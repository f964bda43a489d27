"""The processes that run models for others: `Neuropod.workers`, `neuropod ps`."""

from typing import TypedDict, cast


class WorkerInfo(TypedDict):
    """One worker. Bytes are bytes, times seconds; docs/out_of_process.md explains the states."""

    pid: int
    """0: it isn't there now."""
    host_pid: int
    """The process whose model it runs."""
    model: str
    platform: str
    package: str
    state: str
    """"starting", "ready", "busy", "backing off", "failed", "stopped" (by a signal) or "idle" (it listens,
    and no host is there)."""
    cpu_seconds: float
    memory_bytes: int
    """Its own; the arenas, which it shares with the host, are not in it."""
    input_bytes: int
    output_bytes: int
    restarts: int
    calls: int
    calls_in_flight: int
    running_seconds: float


def list_workers() -> list[WorkerInfo]:
    """Every worker of this user, whatever program started it."""
    from neuropod import _native

    return cast("list[WorkerInfo]", _native.list_workers())
