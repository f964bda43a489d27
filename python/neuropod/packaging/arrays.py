"""Arrays as test data and files hold them."""

import contextlib
import itertools
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np

from neuropod.errors import CorruptPackageError, InvalidArgumentError
from neuropod.packaging.dtypes import numpy_dtype
from neuropod.packaging.nearest_name import did_you_mean

Array = np.ndarray[Any, Any]

# Unicode arrays have cells of equal width; beyond this the strings are written one after the other.
_MAX_UNICODE_BYTES = 64 << 20
_BYTES_SUFFIX = ":utf8"
_ENDS_SUFFIX = ":ends"
_ENTRY_TIME = (2000, 1, 1, 0, 0, 0)


def as_arrays(
    values: Mapping[str, Any], specs: Iterable[Mapping[str, Any]], what: str
) -> dict[str, Array]:
    """The values as arrays; lists and Python numbers take the dtype of their spec.

    Arrays stay what they are. Raises InvalidArgumentError for a name that no spec has and for numbers
    that the dtype can't hold. `what`: the argument, for messages.
    """
    if not isinstance(values, Mapping):
        raise InvalidArgumentError(f"{what} must be a dict of arrays, not {type(values).__name__}")
    dtypes = {spec["name"]: spec["dtype"] for spec in specs}
    result = {}
    for name, value in values.items():
        if name not in dtypes:
            raise InvalidArgumentError(
                f"{what} has {name!r}, which the spec doesn't{did_you_mean(str(name), dtypes)}"
            )
        result[name] = _as_array(value, dtypes[name], f"{what} {name!r}")
    return result


def _as_array(value: Any, dtype: str, what: str) -> Array:
    if isinstance(value, (np.ndarray, np.generic)):
        array = np.asarray(value)
        return _decode(array, what) if array.dtype.kind in "SO" else array
    if hasattr(value, "__dlpack__") or hasattr(value, "__array__"):
        return _foreign_array(value, what)
    if dtype == "string":
        return _decode(np.asarray(value, dtype=object), what)
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise InvalidArgumentError(f"{what} is no array: {error}") from error
    if array.dtype.kind not in "biufc":
        raise InvalidArgumentError(f"{what} should hold {dtype} numbers, not {array.dtype}")
    return _exact_cast(array, dtype, what)


def _foreign_array(value: Any, what: str) -> Array:
    try:
        if hasattr(value, "__array__"):
            return np.asarray(value)
        return np.from_dlpack(value)
    except (TypeError, RuntimeError, BufferError, ValueError) as error:
        raise InvalidArgumentError(
            f"{what}: a {type(value).__name__} that numpy can't take ({error}); pass a numpy array"
        ) from error


def _exact_cast(array: Array, dtype: str, what: str) -> Array:
    """The numbers in another type. Floats may round, everything else must stay the same."""
    target = numpy_dtype(dtype)
    with np.errstate(all="ignore"):
        cast = array.astype(target)
        if array.dtype.kind in "fc" and dtype not in ("bool",) and "int" not in dtype:
            changed = np.isfinite(array) & ~np.isfinite(cast)
        else:
            changed = cast.astype(array.dtype) != array
    if changed.any():
        index = tuple(int(i) for i in np.argwhere(changed)[0])
        raise InvalidArgumentError(
            f"{what} has {array[index]!r} at {index}, which {dtype} can't hold"
        )
    return cast


def _decode(array: Array, what: str) -> Array:
    """Strings as a unicode array; bytes are UTF-8. An array where a NUL ends a string stays objects,
    since numpy's fixed-width strings drop it."""
    strings = []
    for item in array.reshape(-1).tolist():
        if isinstance(item, bytes):
            item = item.decode()
        if not isinstance(item, str):
            raise InvalidArgumentError(f"{what} should hold strings, but has {item!r}")
        strings.append(item)
    return string_array(strings, array.shape)


def string_array(strings: list[str], shape: tuple[int, ...]) -> Array:
    """An array of strings that loses nothing: unicode, or objects where numpy's type would."""
    width = max((len(s) for s in strings), default=0)
    loses = any(s.endswith("\0") for s in strings) or 4 * width * len(strings) > _MAX_UNICODE_BYTES
    array: Array = np.empty(len(strings), dtype=object if loses else f"<U{max(width, 1)}")
    array[:] = strings
    return array.reshape(shape)


def write_npz(path: Path, arrays: Mapping[str, Array]) -> None:
    """Writes a new `.npz` that `numpy.load` reads; the same arrays always give the same bytes.

    Strings that numpy's type can't hold are written as `NAME:utf8` (their bytes, one after the other)
    and `NAME:ends` (where each ends, in the array's shape). bfloat16 is written as numpy does it, as
    2-byte items without a type.
    """
    with zipfile.ZipFile(path, "x", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(arrays):
            for member, array in _members(name, np.asarray(arrays[name])):
                entry = zipfile.ZipInfo(f"{member}.npy", _ENTRY_TIME)
                entry.compress_type = zipfile.ZIP_DEFLATED
                entry.external_attr = 0o100644 << 16
                with archive.open(entry, "w", force_zip64=array.nbytes > 1 << 30) as file:
                    _write_array(file, array)


def _write_array(file: IO[bytes], array: Array) -> None:
    if array.dtype.kind == "V":  # a type of ml_dtypes
        array = array.view(f"V{array.dtype.itemsize}")
    np.lib.format.write_array(file, array, allow_pickle=False)


def _members(name: str, array: Array) -> list[tuple[str, Array]]:
    if array.dtype.kind != "O":
        return [(name, array)]
    encoded = [str(s).encode() for s in array.reshape(-1).tolist()]
    ends = np.cumsum([len(s) for s in encoded], dtype=np.int64).reshape(array.shape)
    data = np.frombuffer(b"".join(encoded), dtype=np.uint8)
    return [(name + _BYTES_SUFFIX, data), (name + _ENDS_SUFFIX, ends)]


def read_npz(
    file: str | Path | IO[bytes], dtypes: Mapping[str, str], name: str | None = None
) -> dict[str, Array]:
    """Reads what `write_npz` wrote. `dtypes`: names of the spec, for types that numpy doesn't name.

    `name`: what errors call the file. Raises CorruptPackageError if it can't be read. Pickled objects
    are refused.
    """
    name = name or str(file)
    try:
        with contextlib.ExitStack() as opened:
            if isinstance(file, str | Path):
                file = opened.enter_context(Path(file).open("rb"))
            if not zipfile.is_zipfile(file):  # numpy would take it for a pickle, or an array
                raise ValueError("it is no .npz, or damaged")
            file.seek(0)
            archive = opened.enter_context(np.load(file, allow_pickle=False))
            stored = {array: archive[array] for array in archive.files}
    except (OSError, ValueError, zipfile.BadZipFile, EOFError, KeyError) as error:
        raise CorruptPackageError(f"arrays in {name} can't be read: {error}") from error
    try:
        return _with_types(stored, dtypes)
    except (KeyError, ValueError, TypeError) as error:
        raise CorruptPackageError(f"arrays in {name} don't fit together: {error!r}") from error


def _with_types(stored: Mapping[str, Array], dtypes: Mapping[str, str]) -> dict[str, Array]:
    result = {}
    for name, array in stored.items():
        if name.endswith(_ENDS_SUFFIX):
            base = name.removesuffix(_ENDS_SUFFIX)
            result[base] = _join(stored[base + _BYTES_SUFFIX].tobytes(), array)
        elif not name.endswith(_BYTES_SUFFIX):
            result[name] = (
                array.view(numpy_dtype(dtypes[name])) if array.dtype.kind == "V" else array
            )
    return result


def _join(data: bytes, ends: Array) -> Array:
    bounds = [0, *ends.reshape(-1).tolist()]
    strings = [data[a:b].decode() for a, b in itertools.pairwise(bounds)]
    return string_array(strings, ends.shape)
