"""Numbers written as text."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from neuropod.evaluation.errors import DataError
from neuropod.packaging.arrays import Array, string_array
from neuropod.packaging.dtypes import numpy_dtype

_BOOLEANS = {"true": True, "false": False, "1": True, "0": False}


def parse_values(texts: Sequence[str], dtype: str, where: Callable[[int], str]) -> Array:
    """The texts as an array of the package dtype. DataError names the first that is none.

    `where`: position to words.
    """
    if dtype == "string":
        return string_array(list(texts), (len(texts),))
    try:
        if dtype != "bool":
            return _numbers(np.asarray(texts, dtype=np.str_), dtype)
    except (ValueError, OverflowError):
        pass  # Find out which.
    values = np.empty(len(texts), numpy_dtype(dtype))
    for position, text in enumerate(texts):
        try:
            values[position] = _one(text, dtype)
        except (ValueError, OverflowError, KeyError) as error:
            found = repr(text) if text.strip() else "an empty cell"
            raise DataError(f"{where(position)}: expected {dtype}, found {found}") from error
    return values


def typed(texts: Array) -> Array:
    """Whole numbers, else numbers, else the texts themselves."""
    flat: Array = texts.astype(np.str_) if texts.dtype.kind == "O" else texts
    for dtype in ("int64", "float64"):
        try:
            return flat.astype(dtype)
        except (ValueError, OverflowError):
            continue
    return texts


def _numbers(texts: Array, dtype: str) -> Array:
    target = numpy_dtype(dtype)
    if target.kind == "u":
        wide = texts.astype(np.uint64)
    else:
        wide = texts.astype(
            np.int64 if target.kind == "i" else np.complex128 if target.kind == "c" else np.float64
        )
    with np.errstate(over="ignore"):
        values: Array = wide.astype(target)
    if target.kind in "iu" and (values != wide).any():
        raise OverflowError
    return values


def _one(text: str, dtype: str) -> Any:
    if dtype == "bool":
        return _BOOLEANS[text.strip().lower()]
    if not text.strip():
        raise ValueError
    return _numbers(np.asarray([text.strip()]), dtype)[0]
