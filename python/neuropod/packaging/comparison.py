"""What a model returned against what it should have."""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from neuropod.packaging.arrays import Array
from neuropod.packaging.errors import SelfTestError
from neuropod.packaging.nearest_name import did_you_mean

# numpy.allclose's own defaults, which existing expectations were written for.
_RELATIVE: Final = 1e-05
_ABSOLUTE: Final = 1e-08
_SHOWN_CHARACTERS: Final = 60


def check_outputs(outputs: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    """Compares each tensor of `expected` with the output of its name; other outputs are not looked at.

    Numbers may differ as numpy.allclose allows, NaN equals NaN, strings must be the same. Raises
    SelfTestError that says which output, how many elements, and the worst one.
    """
    for name, value in expected.items():
        if name not in outputs:
            raise SelfTestError(
                f"the model returned no output {name!r}, which test_expected_out has"
                f"{did_you_mean(name, outputs)}"
            )
        problem = _difference(np.asarray(outputs[name]), np.asarray(value))
        if problem:
            raise SelfTestError(f"output {name!r} differs from test_expected_out: {problem}")


def _difference(actual: Array, expected: Array) -> str | None:
    if _is_text(actual) != _is_text(expected):
        return f"expected {_kind(expected)}, got {_kind(actual)}"
    if actual.shape != expected.shape:
        return f"expected shape {expected.shape}, got {actual.shape}"
    if _is_text(expected):
        return _text_difference(_decoded(actual), _decoded(expected))
    return _number_difference(_computable(actual), _computable(expected))


def _text_difference(actual: Array, expected: Array) -> str | None:
    differs = np.asarray(actual != expected)
    if not differs.any():
        return None
    index = _index(np.argwhere(differs)[0])
    return (
        f"{_count(differs)}; first at {list(index)}: "
        f"expected {_short(expected[index])}, got {_short(actual[index])}"
    )


def _number_difference(actual: Array, expected: Array) -> str | None:
    with np.errstate(all="ignore"):
        close = np.isclose(actual, expected, _RELATIVE, _ABSOLUTE, equal_nan=True)
        if close.all():
            return None
        distance = np.abs(actual - expected)
        excess = distance - (_ABSOLUTE + _RELATIVE * np.abs(expected))
    # A NaN or infinity on one side only is worse than any number.
    excess = np.where(close, -np.inf, np.where(np.isfinite(excess), excess, np.inf))
    index = _index(np.unravel_index(np.argmax(excess), excess.shape))
    return (
        f"{_count(~close)}; worst at {list(index)}: expected {expected[index]}, got {actual[index]} "
        f"(tolerance {_ABSOLUTE:g} + {_RELATIVE:g} × |expected|)"
    )


def _computable(array: Array) -> Array:
    """The numbers in a type whose differences neither wrap around nor lack an implementation."""
    if array.dtype.kind == "c":
        return array.astype(np.complex128)
    if array.dtype.kind in "iu" and array.dtype.itemsize == 8:
        return array.astype(np.longdouble)
    return array.astype(np.float64)


def _decoded(array: Array) -> Array:
    items = [s.decode() if isinstance(s, bytes) else str(s) for s in array.reshape(-1).tolist()]
    result: Array = np.empty(len(items), dtype=object)
    result[:] = items
    return result.reshape(array.shape)


def _is_text(array: Array) -> bool:
    return array.dtype.kind in "USO"


def _kind(array: Array) -> str:
    return "strings" if _is_text(array) else str(array.dtype)


def _count(differs: Array) -> str:
    return f"{int(differs.sum())} of {differs.size} elements"


def _index(index: Any) -> tuple[int, ...]:
    return tuple(int(i) for i in index)


def _short(text: Any) -> str:
    shown = repr(text)
    return shown if len(shown) <= _SHOWN_CHARACTERS else shown[:_SHOWN_CHARACTERS] + "…"
