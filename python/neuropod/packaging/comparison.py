"""What a model returned against what it should have."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from neuropod.packaging.arrays import Array
from neuropod.packaging.errors import SelfTestError
from neuropod.packaging.nearest_name import did_you_mean

# numpy.allclose's own defaults, which existing expectations were written for.
RELATIVE: Final = 1e-05
ABSOLUTE: Final = 1e-08
_SHOWN_CHARACTERS: Final = 60


@dataclass(frozen=True)
class WorstElement:
    """The element that is furthest beyond the tolerance, or nearest to it."""

    index: tuple[int, ...]
    expected: Any
    actual: Any
    absolute: float | None
    """|actual - expected|; None for strings."""

    relative: float | None
    """absolute / |expected|; infinite where zero was expected, None for strings."""


@dataclass(frozen=True)
class OutputComparison:
    """One output against its expectation."""

    name: str
    shape: tuple[int, ...]
    """Of the expectation."""

    differing: int
    """Elements beyond the tolerance."""

    worst: WorstElement | None
    """None if there are no elements to compare, or if all strings are the same."""

    problem: str | None
    """What differs, for people; None if nothing does."""


def compare_outputs(
    outputs: Mapping[str, Any],
    expected: Mapping[str, Any],
    relative: float = RELATIVE,
    absolute: float = ABSOLUTE,
) -> list[OutputComparison]:
    """Compares each tensor of `expected` with the output of its name; other outputs are not looked at.

    Numbers may differ by `absolute + relative * |expected|`, NaN equals NaN, strings must be the same.
    """
    return [
        _compare(name, outputs, np.asarray(value), relative, absolute)
        for name, value in expected.items()
    ]


def check_outputs(outputs: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    """Raises SelfTestError for the first difference that `compare_outputs` finds.

    Its text says which output, how many elements, and the worst one.
    """
    for comparison in compare_outputs(outputs, expected):
        name, problem = comparison.name, comparison.problem
        if name not in outputs:
            raise SelfTestError(
                f"the model returned no output {name!r}, which test_expected_out has"
                f"{did_you_mean(name, outputs)}"
            )
        if problem is not None:
            raise SelfTestError(f"output {name!r} differs from test_expected_out: {problem}")


def _compare(
    name: str, outputs: Mapping[str, Any], expected: Array, relative: float, absolute: float
) -> OutputComparison:
    problem = None
    if name not in outputs:
        problem = f"the model returned no such output{did_you_mean(name, outputs)}"
    else:
        actual = np.asarray(outputs[name])
        if _is_text(actual) != _is_text(expected):
            problem = f"expected {_kind(expected)}, got {_kind(actual)}"
        elif actual.shape != expected.shape:
            problem = f"expected shape {expected.shape}, got {actual.shape}"
    if problem is not None:
        return OutputComparison(name, expected.shape, expected.size, None, problem)
    if _is_text(expected):
        return _compare_text(name, _decoded(actual), _decoded(expected))
    return _compare_numbers(name, actual, expected, relative, absolute)


def _compare_text(name: str, actual: Array, expected: Array) -> OutputComparison:
    differs = np.asarray(actual != expected)
    if not differs.any():
        return OutputComparison(name, expected.shape, 0, None, None)
    index = _index(np.argwhere(differs)[0])
    worst = WorstElement(index, expected[index], actual[index], None, None)
    return OutputComparison(
        name,
        expected.shape,
        int(differs.sum()),
        worst,
        f"{_count(differs)}; first at {list(index)}: "
        f"expected {_short(expected[index])}, got {_short(actual[index])}",
    )


def _compare_numbers(
    name: str, actual: Array, expected: Array, relative: float, absolute: float
) -> OutputComparison:
    if expected.size == 0:
        return OutputComparison(name, expected.shape, 0, None, None)
    got, wanted = computable(actual), computable(expected)
    with np.errstate(all="ignore"):
        close = np.isclose(got, wanted, relative, absolute, equal_nan=True)
        same = (got == wanted) | (np.isnan(got) & np.isnan(wanted))
        distance = np.where(same, 0, np.abs(got - wanted))
        size = np.abs(wanted)
        excess = distance - (absolute + relative * size)
    # A NaN or infinity on one side only is worse than any number.
    excess = np.where(np.isfinite(excess), excess, np.where(close, -np.inf, np.inf))
    if not close.all():
        excess = np.where(close, -np.inf, excess)
    index = _index(np.unravel_index(np.argmax(excess), excess.shape))
    ratio = _ratio(float(distance[index]), float(size[index]))
    worst = WorstElement(index, expected[index], actual[index], float(distance[index]), ratio)
    problem = None
    if not close.all():
        problem = (
            f"{_count(~close)}; worst at {list(index)}: expected {worst.expected}, "
            f"got {worst.actual} (tolerance {absolute:g} + {relative:g} × |expected|)"
        )
    return OutputComparison(name, expected.shape, int((~close).sum()), worst, problem)


def _ratio(distance: float, size: float) -> float:
    if distance == 0:
        return 0.0
    return distance / size if size else math.inf


def computable(array: Array) -> Array:
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
