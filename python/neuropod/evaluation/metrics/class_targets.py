"""Targets that are classes, and the outputs that say one."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from neuropod.evaluation.errors import DataError, MetricError
from neuropod.evaluation.metrics.metric import MetricContext, Targets, target_array
from neuropod.packaging.arrays import Array
from neuropod.packaging.nearest_name import did_you_mean


def class_indices(
    targets: Targets, name: str, metric: str, context: MetricContext, count: int | None
) -> Array:
    """The target as class indices, int64 (rows,).

    Whole numbers are indices, names are looked up in the classes. `count`: of classes, None if it isn't
    known. Raises DataError that names the first row with an unknown label.
    """
    values = _one_per_row(target_array(targets, name, metric, context), name, metric, context)
    if values.dtype.kind in "USO":
        indices = _looked_up(values, name, metric, context)
    elif values.dtype.kind in "iub":
        indices = values.astype(np.int64)
    else:
        whole = values == np.floor(values)
        if not whole.all():
            row = int(np.argmin(whole))
            raise DataError(
                f"{context.where(row)}: {name!r} is {values[row]}, expected a class, which is a whole "
                f"number or a name, for {metric}"
            )
        indices = values.astype(np.int64)
    limit = np.iinfo(np.int64).max if count is None else count
    outside = (indices < 0) | (indices >= limit)
    if outside.any():
        row = int(np.argmax(outside))
        raise DataError(
            f"{context.where(row)}: {name!r} is {_shown(values[row])}, class {indices[row]}; the "
            f"model's classes are 0 to {limit - 1}"
        )
    return indices


def class_names(targets: Targets, name: str, metric: str, context: MetricContext) -> Array:
    """The target as strings (rows,); with classes given, each must be one of them."""
    values = _one_per_row(target_array(targets, name, metric, context), name, metric, context)
    if values.dtype.kind in "iub" and context.classes:
        index = class_indices(targets, name, metric, context, len(context.classes))
        named: Array = np.asarray(context.classes)[index]
        return named
    if values.dtype.kind not in "USO":
        raise MetricError(
            f"metric {metric}: the model's output is text, {name!r} in {context.source} is "
            f"{values.dtype}; --classes says the names of the classes"
        )
    if context.classes:
        _looked_up(values, name, metric, context)
    return values


def _one_per_row(values: Array, name: str, metric: str, context: MetricContext) -> Array:
    if values.size != len(values):
        raise MetricError(
            f"metric {metric} needs one class per row; a row of {name!r} in {context.source} has "
            f"shape {values.shape[1:]}"
        )
    return values.reshape(len(values))


def _looked_up(values: Array, name: str, metric: str, context: MetricContext) -> Array:
    classes: Sequence[str] | None = context.classes
    if not classes:
        raise MetricError(
            f"metric {metric}: {name!r} in {context.source} holds names such as "
            f"{_shown(values[0])}; --classes says which class each name is"
        )
    positions = {label: index for index, label in enumerate(classes)}
    indices = np.empty(len(values), np.int64)
    for row, label in enumerate(values.tolist()):
        if label not in positions:
            raise DataError(
                f"{context.where(row)}: unknown label {_shown(label)} in {name!r}"
                f"{did_you_mean(str(label), positions)}"
            )
        indices[row] = positions[label]
    return indices


def _shown(value: Any) -> str:
    return repr(value.item() if isinstance(value, np.generic) else value)[:60]
