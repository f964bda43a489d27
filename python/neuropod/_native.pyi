"""Neuropod's native module. Private: use `neuropod`."""

import enum
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, overload

import numpy.typing

def error_codes() -> list[tuple[str, str, bool]]:
    """
    Every error code with its origin and whether the same call may succeed later.
    """

class TensorType(enum.Enum):
    """Element type; members are named as in packages."""

    float32 = 0

    float64 = 1

    int8 = 3

    int16 = 4

    int32 = 5

    int64 = 6

    uint8 = 7

    uint16 = 8

    uint32 = 9

    uint64 = 10

    bool = 11

    float16 = 12

    bfloat16 = 13

    complex64 = 14

    complex128 = 15

    string = 2

class Dimension:
    """One dimension of a spec: a size, any size (-1) or a symbol (-2)."""

    @property
    def value(self) -> int:
        """The size; -1 for any, -2 for a symbol."""

    @property
    def symbol(self) -> str:
        """The symbol, or an empty string."""

    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __repr__(self) -> str: ...

class TensorSpec:
    """One input or output of a problem API."""

    @property
    def name(self) -> str: ...
    @property
    def type(self) -> TensorType: ...
    @property
    def dims(self) -> list[Dimension]: ...
    @property
    def optional(self) -> bool:
        """An input that may be left out."""

    def __str__(self) -> str: ...
    def __repr__(self) -> str: ...

class BackendLoadSpec:
    """Points at a plug-in that is not on the search path."""

    def __init__(self, type: str, version: str, path: str) -> None:
        """`path`: its shared library, or the directory of its backend.json."""

    @property
    def type(self) -> str:
        """Platform, e.g. "torchscript"."""

    @type.setter
    def type(self, arg: str, /) -> None: ...
    @property
    def version(self) -> str:
        """Version of its framework, e.g. "2.13.0"."""

    @version.setter
    def version(self, arg: str, /) -> None: ...
    @property
    def path(self) -> str:
        """Its shared library, or the directory of its backend.json."""

    @path.setter
    def path(self, arg: str, /) -> None: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __repr__(self) -> str: ...

class BackendManifest:
    """What a plug-in's backend.json says."""

    @property
    def platform(self) -> str: ...
    @property
    def framework(self) -> str: ...
    @property
    def framework_version(self) -> str: ...
    @property
    def neuropod_abi(self) -> str: ...
    @property
    def library(self) -> str:
        """Absolute path of the plug-in."""

    @property
    def libraries(self) -> list[str]:
        """The framework's, absolute paths, in load order."""

    @property
    def python_module(self) -> str:
        """The module whose import loads the same libraries, or an empty string."""

    @property
    def gpu(self) -> bool: ...
    @property
    def directory(self) -> str:
        """Where the manifest was found."""

class BackendCandidate:
    """One plug-in that was looked at."""

    @property
    def manifest(self) -> BackendManifest: ...
    @property
    def source(self) -> str:
        """The kind of place where it was found."""

    @property
    def rejected(self) -> str:
        """Why it can't be used; empty if it can."""

class BackendSearch:
    """The result of looking for plug-ins."""

    @property
    def candidates(self) -> list[BackendCandidate]:
        """Best first."""

    @property
    def searched(self) -> list[str]:
        """Each place that was searched."""

def find_backends(
    platform: str = "", version_range: str = "*", overrides: Sequence[BackendLoadSpec] = []
) -> BackendSearch:
    """Looks for plug-ins of `platform` ('' means all) without opening any."""

def find_library_conflict(manifest: BackendManifest) -> str:
    """
    Why this process can't load the plug-in beside what it holds; an empty string if it can.
    """

def user_backend_folder() -> str:
    """The user's data folder for plug-ins; an empty string without a home."""

def version_satisfies(version: str, range: str) -> bool:
    """Whether a version is in a range as npm writes ranges."""

def library_version() -> str:
    """The version of the native library."""

def library_path() -> str:
    """The file that the native library was loaded from."""

ABI_VERSION: str = "3"

def read_config(path: str | bytes | os.PathLike[str] | os.PathLike[bytes]) -> dict[str, Any]:
    """
    What a package's config.json says, with defaults; `inputs` and `outputs` hold TensorSpec.
    """

def list_files(path: str | bytes | os.PathLike[str] | os.PathLike[bytes]) -> list[tuple[str, int]]:
    """Every file of a package, by name, with its size in bytes."""

def read_file(path: str | bytes | os.PathLike[str] | os.PathLike[bytes], name: str) -> bytes:
    """The content of one file of a package."""

def hash_file(path: str | bytes | os.PathLike[str] | os.PathLike[bytes], name: str) -> str:
    """Hex SHA-256 of one file of a package."""

def verify_manifest(path: str | bytes | os.PathLike[str] | os.PathLike[bytes]) -> None:
    """
    Compares every file with the manifest; CorruptPackageError names the first that differs.
    """

class ProblemApi:
    """
    The tensors that a problem's models take and return. `neuropod.ProblemAPI` is the public face.
    """

    def __init__(self, inputs: Sequence[TensorSpec], outputs: Sequence[TensorSpec]) -> None: ...
    @property
    def inputs(self) -> list[TensorSpec]: ...
    @property
    def outputs(self) -> list[TensorSpec]: ...

class ApiDifference:
    """One point in which two problem APIs differ."""

    @property
    def side(self) -> str: ...
    @property
    def tensor(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def breaking(self) -> bool: ...

def read_problem_api(path: str | bytes | os.PathLike[str] | os.PathLike[bytes]) -> ProblemApi:
    """Reads a problem-API file; errors hold line and key."""

def parse_problem_api(text: str, source: str) -> ProblemApi:
    """The same for the content of such a file, which messages call `source`."""

def read_package_problem_api(
    path: str | bytes | os.PathLike[str] | os.PathLike[bytes],
) -> ProblemApi:
    """What a package's config.json promises."""

def problem_api_text(api: ProblemApi) -> str:
    """The content of a problem-API file."""

def compare_problem_apis(old: ProblemApi, new: ProblemApi) -> list[ApiDifference]:
    """How `new` differs from `old`."""

def require_fulfilled(required: ProblemApi, found: ProblemApi, what: str) -> None:
    """
    InvalidArgumentError that lists the differences if `found` can't replace `required`.
    """

@overload
def serialize(value: dict[str, numpy.typing.NDArray[Any]]) -> bytes:
    """
    Arrays by name as bytes that deserialize_dict() reads, in any language.
    """

@overload
def serialize(value: numpy.typing.NDArray[Any]) -> bytes:
    """An array as bytes that deserialize() reads, in any language."""

def deserialize(data: bytes) -> numpy.typing.NDArray[Any]:
    """The array that serialize() wrote; strings as dtype S."""

def deserialize_dict(data: bytes) -> dict[str, numpy.typing.NDArray[Any]]:
    """The arrays by name that serialize() wrote; strings as dtype S."""

def generate_key_pair() -> tuple[str, str, str]:
    """
    A new Ed25519 pair: the private key's PEM, the public key's PEM, the key's id.
    """

def private_key_id(path: str | bytes | os.PathLike[str] | os.PathLike[bytes]) -> str:
    """The id of the pair that the private key in the file belongs to."""

def make_signature(
    path: str | bytes | os.PathLike[str] | os.PathLike[bytes],
    private_key: str | bytes | os.PathLike[str] | os.PathLike[bytes],
    add_manifest: bool = False,
) -> tuple[dict[str, bytes], str]:
    """
    What must be put into the package, by file name, so that the key in the file `private_key` signs it
    too, and that key's id. The package isn't changed.
    """

def verify_signature(
    path: str | bytes | os.PathLike[str] | os.PathLike[bytes], public_keys: Sequence[str]
) -> str:
    """
    Verifies every file of a package against the signature by one of the keys in the files
    `public_keys`; returns that key's id.
    """

def list_signers(path: str | bytes | os.PathLike[str] | os.PathLike[bytes]) -> list[str]:
    """
    Ids of the keys that sign the package, by its own account: nothing is verified.
    """

class OPEOptions:
    """See `neuropod.OPEOptions`; spans in milliseconds."""

    def __init__(self) -> None: ...
    @property
    def control_queue_name(self) -> str: ...
    @control_queue_name.setter
    def control_queue_name(self, arg: str, /) -> None: ...
    @property
    def cpus(self) -> list[int]: ...
    @cpus.setter
    def cpus(self, arg: Sequence[int], /) -> None: ...
    @property
    def cpu_quota(self) -> float: ...
    @cpu_quota.setter
    def cpu_quota(self, arg: float, /) -> None: ...
    @property
    def threads(self) -> int: ...
    @threads.setter
    def threads(self, arg: int, /) -> None: ...
    @property
    def nice(self) -> int: ...
    @nice.setter
    def nice(self, arg: int, /) -> None: ...
    @property
    def memory_limit(self) -> int: ...
    @memory_limit.setter
    def memory_limit(self, arg: int, /) -> None: ...
    @property
    def gpu(self) -> str: ...
    @gpu.setter
    def gpu(self, arg: str, /) -> None: ...
    @property
    def env(self) -> dict[str, str]: ...
    @env.setter
    def env(self, arg: Mapping[str, str], /) -> None: ...
    @property
    def startup_timeout(self) -> int: ...
    @startup_timeout.setter
    def startup_timeout(self, arg: int, /) -> None: ...
    @property
    def timeout(self) -> int | None: ...
    @timeout.setter
    def timeout(self, arg: int | None, /) -> None: ...
    @property
    def kill_grace(self) -> int: ...
    @kill_grace.setter
    def kill_grace(self, arg: int, /) -> None: ...
    @property
    def retries(self) -> int: ...
    @retries.setter
    def retries(self, arg: int, /) -> None: ...
    @property
    def num_workers(self) -> int: ...
    @num_workers.setter
    def num_workers(self, arg: int, /) -> None: ...
    @property
    def concurrency(self) -> int: ...
    @concurrency.setter
    def concurrency(self, arg: int, /) -> None: ...
    @property
    def spin(self) -> int: ...
    @spin.setter
    def spin(self, arg: int, /) -> None: ...
    @property
    def core_dumps(self) -> bool: ...
    @core_dumps.setter
    def core_dumps(self, arg: bool, /) -> None: ...

class RuntimeOptions:
    """
    How a model is loaded and run. `neuropod.load_neuropod` documents the fields.
    """

    def __init__(self) -> None: ...
    @property
    def use_ope(self) -> bool: ...
    @use_ope.setter
    def use_ope(self, arg: bool, /) -> None: ...
    @property
    def ope_options(self) -> OPEOptions: ...
    @ope_options.setter
    def ope_options(self, arg: OPEOptions, /) -> None: ...
    @property
    def visible_device(self) -> int: ...
    @visible_device.setter
    def visible_device(self, arg: int, /) -> None: ...
    @property
    def load_model_at_construction(self) -> bool: ...
    @load_model_at_construction.setter
    def load_model_at_construction(self, arg: bool, /) -> None: ...
    @property
    def disable_shape_and_type_checking(self) -> bool: ...
    @disable_shape_and_type_checking.setter
    def disable_shape_and_type_checking(self, arg: bool, /) -> None: ...
    @property
    def verify_hashes(self) -> bool: ...
    @verify_hashes.setter
    def verify_hashes(self, arg: bool, /) -> None: ...
    @property
    def threads(self) -> int: ...
    @threads.setter
    def threads(self, arg: int, /) -> None: ...
    @property
    def strict(self) -> bool: ...
    @strict.setter
    def strict(self, arg: bool, /) -> None: ...
    @property
    def collect_metrics(self) -> bool: ...
    @collect_metrics.setter
    def collect_metrics(self, arg: bool, /) -> None: ...
    @property
    def allow_native_code(self) -> bool: ...
    @allow_native_code.setter
    def allow_native_code(self, arg: bool, /) -> None: ...
    @property
    def require_signature(self) -> list[str]: ...
    @require_signature.setter
    def require_signature(self, arg: Sequence[str], /) -> None: ...

class CallControl:
    """Withdraws a call from another thread."""

    def __init__(self) -> None: ...
    def cancel(self) -> bool:
        """True: the call hadn't begun and never will. False: it goes on."""

def list_workers() -> list[dict[str, Any]]:
    """Every worker process of this user."""

class Model:
    """A loaded package. `neuropod.Neuropod` documents the methods."""

    def __init__(
        self,
        path: str | bytes | os.PathLike[str] | os.PathLike[bytes],
        backend_overrides: Sequence[BackendLoadSpec] = ...,
        options: RuntimeOptions = ...,
    ) -> None: ...
    def infer(
        self, inputs: Mapping[str, Any], requested_outputs: Sequence[str] | None = None
    ) -> dict[str, numpy.typing.NDArray[Any]]: ...
    def infer_controlled(
        self,
        inputs: Mapping[str, Any],
        requested_outputs: Sequence[str] | None,
        control: CallControl,
    ) -> dict[str, numpy.typing.NDArray[Any]]: ...
    def allocate(self, name: str, shape: Sequence[int]) -> numpy.typing.NDArray[Any]: ...
    def workers(self) -> list[dict[str, Any]]: ...
    def concurrency(self) -> int: ...
    def load_model(self) -> None: ...
    def reset(self) -> None: ...
    def get_name(self) -> str: ...
    def get_platform(self) -> str: ...
    def get_inputs(self) -> list[TensorSpec]: ...
    def get_outputs(self) -> list[TensorSpec]: ...
    def get_config(self) -> dict[str, Any]: ...
    def stats(self) -> dict[str, Any]: ...
    def allocator_stats(self) -> dict[str, int]: ...

def metrics_text() -> str:
    """`neuropod.metrics_text` documents it."""

def set_metrics_callback(callback: Callable[[dict[str, Any]], object] | None) -> None:
    """`neuropod.set_metrics_callback` documents it."""

def set_log_sink(sink: Callable[[str, str, str, int, float], object] | None) -> None:
    """`neuropod.set_log_sink` documents it."""

def set_log_level(level: str) -> None:
    """`neuropod.set_log_level` documents it."""

def set_log_format(format: str) -> None:
    """`neuropod.set_log_format` documents it."""
