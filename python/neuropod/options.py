"""The options of `load_neuropod`, checked and turned into what the native module takes."""

import functools
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypedDict, TypeVar

from neuropod.errors import InvalidArgumentError
from neuropod.ope_options import OPEOptions, native_ope_options

if TYPE_CHECKING:
    from neuropod._native import BackendLoadSpec, RuntimeOptions

Path = str | bytes | os.PathLike[str] | os.PathLike[bytes]
Device = int | str | None

CPU: Final = -1


class NotGiven:
    """The type of NOT_GIVEN, which tells an option that wasn't given from one that is None."""

    def __repr__(self) -> str:
        return "<not given>"


NOT_GIVEN: Final = NotGiven()


class LoadOptions(TypedDict, total=False):
    """The keyword arguments of `load_neuropod`, which documents them."""

    use_ope: bool
    visible_device: Device
    visible_gpu: int | NotGiven | None
    load_model_at_construction: bool
    disable_shape_and_type_checking: bool
    verify_hashes: bool
    threads: int | None
    backend_overrides: "Sequence[BackendLoadSpec | tuple[str, str, str]]"
    ope_options: "OPEOptions | Mapping[str, Any] | None"
    strict: bool
    collect_metrics: bool
    allow_native_code: bool
    require_signature: "Path | Sequence[Path] | None"


_P = ParamSpec("_P")
_R = TypeVar("_R")


def takes_existing_names(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Lets a loading function take the names that existing code uses, and refuse unknown ones well.

    `neuropod_path=` is the first argument, `_always_use_native=True` is without effect.
    """

    @functools.wraps(function)
    def checked(*args: Any, **kwargs: Any) -> _R:
        if not args and "path" not in kwargs and "neuropod_path" in kwargs:
            args = (kwargs.pop("neuropod_path"),)
        if not kwargs.pop("_always_use_native", True):
            raise InvalidArgumentError(
                "_always_use_native=False isn't possible: models run in the native library only"
            )
        refuse_unknown(
            "load_neuropod",
            "keyword argument",
            kwargs.keys() - {"path"},
            (*LoadOptions.__annotations__, "swappable"),
        )
        return function(*args, **kwargs)

    return checked


class UnknownOptionError(InvalidArgumentError, TypeError):
    """An option that doesn't exist; the text holds the nearest that does."""


def refuse_unknown(what: str, kind: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Raises UnknownOptionError for the first of `given` that isn't in `known`."""
    import difflib

    names = list(known)
    for name in given:
        if name in names:
            continue
        nearest = difflib.get_close_matches(name, names, n=1)
        hint = f"did you mean {nearest[0]!r}?" if nearest else f"there are: {', '.join(names)}"
        raise UnknownOptionError(f"{what} got an unexpected {kind} {name!r}; {hint}")


def device_index(visible_device: Device, option: str = "visible_device") -> int:
    """The native number of a device: -1 for the CPU, otherwise the GPU's index from 0."""
    if visible_device is None:
        return CPU
    if isinstance(visible_device, str):
        kind, _, index = visible_device.lower().partition(":")
        if kind == "cpu" and not index:
            return CPU
        if kind in ("gpu", "cuda") and (index or "0").isdecimal():
            return int(index or "0")
    elif not isinstance(visible_device, bool):
        try:
            index_number = visible_device.__index__()
        except AttributeError:
            index_number = CPU
        if index_number >= 0:
            return index_number
    raise InvalidArgumentError(
        f"{option} {visible_device!r} is no device; expected 'cpu' or a GPU's index from 0"
    )


def native_options(options: LoadOptions) -> "RuntimeOptions":
    """The options as the native library takes them. Raises InvalidArgumentError."""
    from neuropod._native import RuntimeOptions

    refuse_unknown("load_neuropod", "keyword argument", options, LoadOptions.__annotations__)
    given: dict[str, Any] = dict(options)
    native = RuntimeOptions()
    for name in _SWITCHES:
        value = given.get(name, getattr(native, name))
        if not isinstance(value, bool):
            raise InvalidArgumentError(f"{name} is expected to be True or False, but is {value!r}")
        setattr(native, name, value)
    native.visible_device = _chosen_device(options)
    native.threads = _thread_count(options.get("threads"))
    keys = options.get("require_signature")
    native.require_signature = [] if keys is None else key_paths(keys, "require_signature")
    native.ope_options = native_ope_options(options.get("ope_options"))
    return native


_SWITCHES: Final = (
    "use_ope",
    "load_model_at_construction",
    "disable_shape_and_type_checking",
    "verify_hashes",
    "strict",
    "collect_metrics",
    "allow_native_code",
)


def _chosen_device(options: LoadOptions) -> int:
    visible_gpu = options.get("visible_gpu", NOT_GIVEN)
    visible_device = options.get("visible_device", NOT_GIVEN)
    if isinstance(visible_gpu, NotGiven):
        return 0 if isinstance(visible_device, NotGiven) else device_index(visible_device)
    if not isinstance(visible_device, NotGiven):
        raise InvalidArgumentError(
            "visible_device and visible_gpu are two names of one option; give visible_device only"
        )
    if isinstance(visible_gpu, str):
        raise InvalidArgumentError(
            f"visible_gpu {visible_gpu!r} is no GPU; expected an index from 0, or None for the CPU"
        )
    return device_index(visible_gpu, "visible_gpu")


def _thread_count(threads: int | None) -> int:
    if threads is None:
        return 0
    if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
        raise InvalidArgumentError(
            f"threads is expected to be a positive number, or None for the framework's default, "
            f"but is {threads!r}"
        )
    return threads


def key_paths(keys: "Path | Sequence[Path]", argument: str) -> list[str]:
    """The paths of one key or several. No key at all is an error: it would verify nothing."""
    if isinstance(keys, (str, bytes, os.PathLike)):
        keys = (keys,)
    try:
        paths = [os.fsdecode(key) for key in keys]
    except TypeError as error:
        raise InvalidArgumentError(
            f"{argument} is expected to be the path of a public key or a list of such paths, but is "
            f"{keys!r:.80}"
        ) from error
    if not paths:
        raise InvalidArgumentError(
            f"{argument} is an empty list, so no key could verify the package; give at least one "
            f"public key, or None to load packages whoever made them"
        )
    return paths


def native_overrides(
    overrides: "Sequence[BackendLoadSpec | tuple[str, str, str]]",
) -> "list[BackendLoadSpec]":
    """Plug-ins to prefer, the last one most: the registered ones, then `overrides`."""
    from neuropod._native import BackendLoadSpec
    from neuropod.registry import registered_backends

    specs: list[BackendLoadSpec] = []
    for override in [*registered_backends(), *overrides]:
        if isinstance(override, BackendLoadSpec):
            specs.append(override)
            continue
        try:
            platform, version, path = override
            specs.append(BackendLoadSpec(platform, version, os.fspath(path)))
        except (TypeError, ValueError) as error:
            raise InvalidArgumentError(
                f"backend_overrides: {override!r} is expected to be (platform, version, path)"
            ) from error
    return specs
