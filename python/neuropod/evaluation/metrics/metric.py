"""What a metric is: bound to outputs and targets before a model runs, computed after."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from neuropod.evaluation.columns import Column, Rows
from neuropod.evaluation.errors import MetricError
from neuropod.packaging.arrays import Array
from neuropod.packaging.nearest_name import did_you_mean

Outputs = Mapping[str, Column]
Targets = Mapping[str, Rows]


class Score(Protocol):
    """A metric's value over rows, which can be computed again for a resample of the rows."""

    @property
    def value(self) -> float:
        """Over every row once."""

    def resampled(self, counts: Array) -> Array:
        """Values, float64 (resamples,), with row i taken counts[r, i] times; int64 (resamples, rows)."""


@dataclass(frozen=True)
class MetricContext:
    """What metrics are bound to.

    `outputs`: the problem API's, `row_shapes` what a row of each looks like. `inputs`, `columns`: names
    of the model's inputs and of the data's columns. `where`: names a row of the data.
    """

    outputs: Sequence[Mapping[str, Any]]
    row_shapes: Mapping[str, Sequence[Any]]
    inputs: Sequence[str]
    columns: Sequence[str]
    target: str | None
    classes: Sequence[str] | None
    source: str
    where: Callable[[int], str]

    def output(self, name: str) -> Mapping[str, Any]:
        """The spec of an output. MetricError if there is none."""
        known = [spec["name"] for spec in self.outputs]
        if name not in known:
            raise MetricError(f"the model has no output {name!r}{did_you_mean(name, known)}")
        return self.outputs[known.index(name)]

    def column(self, name: str) -> str:
        """The name itself. MetricError if the data have no such column."""
        if name not in self.columns:
            raise MetricError(
                f"{self.source} has no column {name!r}{did_you_mean(name, self.columns)}"
            )
        return name

    def choose_target(self, metric: str, output: str, chosen: str | None) -> str:
        """The column that is compared: chosen, `--target`, the output's name, or the only one left."""
        if chosen or self.target:
            return self.column(chosen or self.target or "")
        others = [name for name in self.columns if name not in self.inputs]
        if output in others:
            return output
        if len(others) == 1:
            return others[0]
        if not others:
            raise MetricError(
                f"metric {metric}: {self.source} has no column but inputs; expected one with targets"
            )
        raise MetricError(
            f"metric {metric}: {self.source} has several columns that may be the target: "
            f"{', '.join(map(repr, others))}; choose with --target NAME or {metric}:target=NAME"
        )


class Metric(ABC):
    """A metric bound to its outputs and targets.

    `label`: as tables show it. `outputs`, `targets`: the names it needs.
    """

    label: str
    higher_is_better: bool
    outputs: Sequence[str]
    targets: Sequence[str]

    @abstractmethod
    def check_targets(self, targets: Targets) -> None:
        """Raises MetricError or DataError for targets that don't fit, before any model runs."""

    @abstractmethod
    def score(self, outputs: Outputs, targets: Targets) -> Score:
        """Raises MetricError for outputs that don't fit."""


class MeanScore:
    """A function of the means of per-row terms.

    terms: float64 (rows, k). combine: takes float64 (…, k), returns (…,); default: the only term.
    """

    def __init__(self, terms: Array, combine: Callable[[Array], Array] | None = None) -> None:
        self._terms = terms.reshape(len(terms), -1).astype(np.float64, copy=False)
        self._combine = combine or (lambda means: means[..., 0])

    @property
    def value(self) -> float:
        return float(self._combine(self._terms.mean(axis=0)))

    def resampled(self, counts: Array) -> Array:
        means = counts.astype(np.float64) @ self._terms / counts.sum(axis=1, keepdims=True)
        return self._combine(means)


def as_floats(column: Column, metric: str) -> Array:
    """An output as float64 (rows, …). MetricError if its rows differ in shape."""
    values = column.values()
    if isinstance(values, list):
        first = values[0].shape
        row = next(i for i, value in enumerate(values) if value.shape != first)
        raise MetricError(
            f"metric {metric} needs an output of one shape; {column.name!r} has {first} in row 0 and "
            f"{values[row].shape} in row {row}"
        )
    return values.astype(np.float64)


def target_array(targets: Targets, name: str, metric: str, context: MetricContext) -> Array:
    """A target as an array. MetricError if its rows differ in shape."""
    values = targets[name]
    if isinstance(values, list):
        shapes = {value.shape for value in values}
        if len(shapes) > 1:
            raise MetricError(
                f"metric {metric}: the rows of {name!r} in {context.source} differ in shape; expected "
                "one shape"
            )
        return np.stack(values)
    return values
