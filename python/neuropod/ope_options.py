"""Settings of a model that runs in a process of its own."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Final

from neuropod.errors import InvalidArgumentError

if TYPE_CHECKING:
    from neuropod._native import OPEOptions as NativeOptions

_SPINS: Final = ("auto", "never", "always")


@dataclass(frozen=True, kw_only=True)
class OPEOptions:
    """How `load_neuropod(path, use_ope=True, ope_options=...)` runs the model's processes, its workers.

    A dict with the same keys does as well. Times are in seconds, memory in bytes. docs/out_of_process.md
    explains them. What can't be had on this machine, or contradicts itself, is refused when loading.
    """

    cpus: Sequence[int] = ()
    """The CPUs that a worker may run on; none: those of this process."""
    cpu_quota: float = 0
    """CPU time that all threads of one worker may use, in CPUs; 0: no limit. Needs a writable cgroup."""
    threads: int = 0
    """Threads the framework uses for one operation; 0: `threads` of `load_neuropod`."""
    nice: int = 0
    """Added to a worker's niceness, 0 to 19."""
    memory_limit: int = 0
    """Bytes of memory that a worker may use, tensors included; 0: no limit."""
    gpu: int | str | None = None
    """What a worker finds in CUDA_VISIBLE_DEVICES: an index, a UUID, or several with commas between."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Environment variables that a worker gets besides those of this process, or instead."""
    startup_timeout: float = 120
    """How long a worker may take to start and load the model."""
    timeout: float | None = None
    """A call's deadline, from `infer` on; None: a call may take as long as it likes."""
    kill_grace: float = 1
    """How long a worker may go on with a call that is late or was cancelled before it is killed."""
    retries: int = 0
    """How often a call is run again whose worker died. Not for stateful models."""
    num_workers: int = 1
    """Workers that share the calls; each holds the whole model."""
    concurrency: int = 1
    """Calls that one worker runs at once."""
    spin: str = "auto"
    """Whether waiting threads look for the answer before they sleep: "auto", "never" or "always"."""
    core_dumps: bool = False
    """Whether a worker that crashes may leave a core file."""
    control_queue_name: str = ""
    """The socket of a worker that runs already, `neuropod-worker --listen PATH`."""
    free_memory_every_cycle: bool = True
    """Accepted for existing code, without effect."""


def native_ope_options(given: "OPEOptions | Mapping[str, Any] | None") -> "NativeOptions":
    """The options as the native library takes them. Raises InvalidArgumentError naming the key."""
    from neuropod._native import OPEOptions as NativeOptions
    from neuropod.options import refuse_unknown

    native = NativeOptions()
    if given is None:
        return native
    if not isinstance(given, OPEOptions):
        if not isinstance(given, Mapping):
            raise InvalidArgumentError(
                f"ope_options is expected to be OPEOptions or a dict, but is {given!r:.80}"
            )
        refuse_unknown("ope_options", "key", given, [option.name for option in fields(OPEOptions)])
        given = OPEOptions(**given)

    native.cpus = _cpus(given.cpus)
    native.cpu_quota = _number("cpu_quota", given.cpu_quota)
    for name in ("threads", "nice", "memory_limit", "retries", "num_workers", "concurrency"):
        setattr(native, name, _whole(name, getattr(given, name)))
    native.gpu = _gpu(given.gpu)
    native.env = _environment(given.env)
    native.startup_timeout = _milliseconds("startup_timeout", given.startup_timeout)
    native.kill_grace = _milliseconds("kill_grace", given.kill_grace)
    if given.timeout is not None:
        native.timeout = _milliseconds("timeout", given.timeout)
    if given.spin not in _SPINS:
        raise _wrong("spin", "one of " + ", ".join(map(repr, _SPINS)), given.spin)
    native.spin = _SPINS.index(given.spin)
    for name in ("core_dumps", "free_memory_every_cycle"):
        if not isinstance(getattr(given, name), bool):
            raise _wrong(name, "True or False", getattr(given, name))
    native.core_dumps = given.core_dumps
    if not isinstance(given.control_queue_name, str):
        raise _wrong("control_queue_name", "the path of a socket", given.control_queue_name)
    native.control_queue_name = given.control_queue_name
    return native


def _wrong(name: str, expected: str, value: object) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"ope_options.{name} is expected to be {expected}, but is {value!r:.80}"
    )


def _whole(name: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**63:
        raise _wrong(name, "a whole number from 0", value)
    if value >= 2**31 and name != "memory_limit":
        raise _wrong(name, "a number that makes sense", value)
    return value


def _number(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise _wrong(name, "a number", value)
    return float(value)


def _milliseconds(name: str, value: object) -> int:
    seconds = _number(name, value)
    if abs(seconds) > 1e9:
        raise _wrong(name, "a number of seconds below a billion", value)
    # A deadline that is there must not become none.
    return math.ceil(seconds * 1000) if seconds > 0 else math.floor(seconds * 1000)


def _cpus(value: object) -> list[int]:
    if isinstance(value, (str, bytes)) or not isinstance(value, (Sequence, set, frozenset)):
        raise _wrong("cpus", "a list of CPU numbers", value)
    return [_whole("cpus", cpu) for cpu in value]


def _gpu(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    return str(_whole("gpu", value))


def _environment(value: object) -> dict[str, str]:
    if not isinstance(value, Mapping) or not all(
        isinstance(text, str) for pair in value.items() for text in pair
    ):
        raise _wrong("env", "a dict of str by str", value)
    return dict(value)
