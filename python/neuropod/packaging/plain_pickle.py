"""Pickles of plain data, read without running what else a pickle can hold.

A pickle is a program. This reader knows the few callables that make arrays and complex numbers, lets
none of them take an argument that could make memory be misread, and refuses everything else.
"""

import io
import pickle
import sys
from collections.abc import Callable
from typing import IO, Any, ClassVar, Final

import numpy as np

from neuropod.errors import InvalidPackageError, NeuropodError
from neuropod.packaging.dtypes import bfloat16_type

_PLAIN_KINDS: Final = "biufcSUO"
_NEW_PREFIX: Final = "numpy._core."
_OLD_PREFIX: Final = "numpy.core."

_ARRAY_TYPE: Final = "numpy.ndarray"
"""Stands for the class, which appears only as an argument of `_reconstruct`; can't be called."""


def load_plain_pickle(data: bytes) -> Any:
    """Unpickles plain containers, numbers, strings and numpy arrays.

    Raises InvalidPackageError that names what was refused, or says why the data can't be read.
    """
    try:
        return _PlainUnpickler(io.BytesIO(data)).load()
    except NeuropodError:
        raise
    except Exception as error:  # damaged data raises whatever its opcodes run into
        raise InvalidPackageError(f"pickled test data can't be read: {error!r}") from error


def dump_plain_pickle(value: Any, file: IO[bytes]) -> None:
    """Pickles so that numpy 1 and 2 both read it: they call the module of `_reconstruct` differently."""
    _PortablePickler(file, protocol=4).dump(value)


class _PortablePickler(pickle._Pickler):
    # Its own members, which the types of the standard library leave out.
    save: Callable[[Any], None]
    write: Callable[[bytes], int]
    memoize: Callable[[Any], None]

    def save_global(self, obj: Any, name: str | None = None) -> None:
        module = getattr(obj, "__module__", None) or ""
        if not module.startswith(_NEW_PREFIX):
            super().save_global(obj, name)  # type: ignore[misc]
            return
        self.save(_OLD_PREFIX + module.removeprefix(_NEW_PREFIX))
        self.save(name or obj.__name__)
        self.write(pickle.STACK_GLOBAL)
        self.memoize(obj)


class _PlainUnpickler(pickle._Unpickler):
    dispatch: ClassVar[dict[int, Any]] = dict(pickle._Unpickler.dispatch)
    stack: list[Any]

    def find_class(self, module: str, name: str) -> Any:
        module = module.replace(_NEW_PREFIX, _OLD_PREFIX).replace("__builtin__", "builtins")
        if (module, name) == ("ml_dtypes", "bfloat16"):
            return bfloat16_type()
        if (module, name) not in _CALLABLES:
            raise InvalidPackageError(
                f"pickled test data wants {module}.{name}; only plain containers, numbers, strings "
                "and numpy arrays are read"
            )
        return _CALLABLES[module, name]

    def load_build(self) -> None:
        """Arrays and dtypes have states of their own; nothing else that's plain has."""
        state = self.stack.pop()
        instance = self.stack[-1]
        if isinstance(instance, np.dtype):
            # Only the byte order is taken: sizes, fields and flags that lie make numpy misread memory.
            safe = list(instance.__reduce__()[2])
            safe[1] = state[1]
            instance.__setstate__(tuple(safe))  # type: ignore[attr-defined]
        elif type(instance) is np.ndarray:
            instance.__setstate__(state)
        else:
            raise InvalidPackageError(f"pickled test data sets the state of a {type(instance)}")

    dispatch[pickle.BUILD[0]] = load_build


def _dtype(spec: Any, _align: Any = False, _copy: Any = False) -> np.dtype[Any]:
    """A simple type, always a copy of its own, since its byte order is set afterwards."""
    is_bfloat16 = "ml_dtypes" in sys.modules and spec is bfloat16_type()
    is_simple = isinstance(spec, str) or is_bfloat16
    dtype: np.dtype[Any] | None = np.dtype(spec, copy=True) if is_simple else None
    if dtype is None or not (dtype.kind in _PLAIN_KINDS or is_bfloat16):
        raise InvalidPackageError(f"pickled test data has the dtype {spec!r}, which isn't plain")
    return dtype


def _reconstruct(_type: Any, shape: Any, typecode: Any) -> np.ndarray[Any, Any]:
    """The empty array that BUILD fills."""
    return np.ndarray(shape, "b")


def _scalar(dtype: np.dtype[Any], data: Any = b"") -> Any:
    raw = data.encode("latin1") if isinstance(data, str) else data
    return np.frombuffer(raw, dtype=dtype)[0]


def _frombuffer(buffer: Any, dtype: Any, shape: Any, order: Any, axes: Any = None) -> Any:
    array = np.frombuffer(buffer, dtype=dtype)
    if axes is None:
        return array.reshape(shape, order=order)
    return array.reshape([shape[i] for i in axes]).transpose(np.argsort(axes))


def _empty_bytes() -> bytes:
    """Old protocols write empty bytes as a call without arguments."""
    return b""


def _encode(text: str, encoding: str) -> bytes:
    """What old protocols write for bytes; other codecs are refused, some do more than encode."""
    if encoding not in ("latin1", "latin-1"):
        raise InvalidPackageError(f"pickled test data asks for the codec {encoding!r}")
    return text.encode("latin1")


_CALLABLES: Final[dict[tuple[str, str], Any]] = {
    ("_codecs", "encode"): _encode,
    ("builtins", "bytes"): _empty_bytes,
    ("builtins", "complex"): complex,
    ("builtins", "set"): set,
    ("builtins", "frozenset"): frozenset,
    ("builtins", "bytearray"): bytearray,
    ("collections", "OrderedDict"): dict,
    ("numpy", "ndarray"): _ARRAY_TYPE,
    ("numpy", "dtype"): _dtype,
    ("numpy.core.multiarray", "_reconstruct"): _reconstruct,
    ("numpy.core.multiarray", "scalar"): _scalar,
    ("numpy.core.numeric", "_frombuffer"): _frombuffer,
}
