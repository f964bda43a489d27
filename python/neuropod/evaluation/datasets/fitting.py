"""Rows of data against the problem API, before any model sees them."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from neuropod.evaluation.batching import takes_leading_one
from neuropod.evaluation.columns import Rows
from neuropod.evaluation.errors import DataError
from neuropod.packaging.arrays import Array
from neuropod.packaging.dtypes import numpy_dtype
from neuropod.problem_api import shape_text


def fit_rows(
    rows: Rows, spec: Mapping[str, Any], first_row: int, where: Callable[[int], str], batched: bool
) -> Rows:
    """The rows in the spec's dtype. Floats may round, everything else must stay what it is.

    batched: the spec's first dimension counts rows. Otherwise a row may also be a whole tensor.
    Raises DataError that names the first row whose values or shape don't fit.
    """
    if not isinstance(rows, list):
        return _fit(rows, spec, lambda i: where(first_row + i), batched)
    return [
        fit_rows(np.asarray(row)[None], spec, first_row + index, where, batched)[0]
        for index, row in enumerate(rows)
    ]


def _fit(
    block: Array, spec: Mapping[str, Any], where: Callable[[int], str], batched: bool
) -> Array:
    if not _shape_fits(block.shape[1:], spec, batched):
        whole = shape_text(spec["shape"])
        if takes_leading_one(spec):
            wanted = f"{shape_text(spec['shape'][1:])} (the model takes {whole})"
        else:
            wanted = whole
        raise DataError(
            f"{where(0)}: input {spec['name']!r} has shape {shape_text(block.shape[1:])}, expected "
            f"{wanted}; the first axis of an array counts rows"
        )
    return _cast(block, spec, where)


def _shape_fits(shape: tuple[int, ...], spec: Mapping[str, Any], batched: bool) -> bool:
    wanted = list(spec["shape"])
    if batched or (len(shape) == len(wanted) - 1 and takes_leading_one(spec)):
        wanted = wanted[1:]
    return len(shape) == len(wanted) and all(
        not isinstance(want, int) or want == size for want, size in zip(wanted, shape, strict=True)
    )


def _cast(block: Array, spec: Mapping[str, Any], where: Callable[[int], str]) -> Array:
    dtype = spec["dtype"]
    is_text = block.dtype.kind in "USO"
    if is_text != (dtype == "string"):
        found = f"{'text' if is_text else block.dtype} {_example(block)}"
        raise DataError(f"{where(0)}: input {spec['name']!r} is {dtype}, found {found}")
    target = numpy_dtype(dtype)
    if is_text or block.dtype == target:
        return block
    with np.errstate(all="ignore"):
        cast = block.astype(target)
        if block.dtype.kind in "biufV" and target.kind in "fcV":
            changed = np.isfinite(block.astype(np.float64)) & ~np.isfinite(cast)
        else:
            changed = cast.astype(block.dtype) != block
    if np.any(changed):
        index = tuple(int(i) for i in np.argwhere(changed)[0])
        raise DataError(
            f"{where(index[0])}: input {spec['name']!r} is {dtype}, which can't hold "
            f"{block[index]!s} (the data are {block.dtype})"
        )
    return cast


def _example(block: Array) -> str:
    return repr(block.reshape(-1)[0].item() if block.dtype.kind != "O" else block.reshape(-1)[0])[
        :60
    ]
