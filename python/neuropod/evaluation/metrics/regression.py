"""MAE, MSE and R². A row may hold several numbers: errors are averaged over them, and R² over each, as
scikit-learn's `uniform_average` does."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from neuropod.evaluation.errors import DataError, MetricError
from neuropod.evaluation.metrics.metric import (
    MeanScore,
    Metric,
    MetricContext,
    Outputs,
    Score,
    Targets,
    as_floats,
    target_array,
)
from neuropod.evaluation.metrics.request import MetricRequest
from neuropod.packaging.arrays import Array
from neuropod.problem_api import shape_text


class RegressionMetric(Metric):
    """What the three have in common: one output of numbers, one target of as many."""

    higher_is_better = False

    def __init__(self, request: MetricRequest, context: MetricContext) -> None:
        request.refuse_other_options("output", "target")
        self.label = request.text
        self._context = context
        self._spec = _choose_output(request, context)
        self.outputs = [self._spec["name"]]
        self.targets = [
            context.choose_target(request.name, self._spec["name"], request.options.get("target"))
        ]

    def check_targets(self, targets: Targets) -> None:
        wanted = self._target(targets)
        shape = self._context.row_shapes[self._spec["name"]]
        if all(isinstance(size, int) for size in shape):
            self._check_size(wanted, int(np.prod(shape, dtype=np.int64)))

    def _pairs(self, outputs: Outputs, targets: Targets) -> tuple[Array, Array]:
        """Predicted and wanted, float64 (rows, numbers)."""
        predicted = as_floats(outputs[self._spec["name"]], self.label)
        predicted = predicted.reshape(len(predicted), -1)
        wanted = self._target(targets)
        self._check_size(wanted, predicted.shape[1])
        return predicted, wanted

    def _target(self, targets: Targets) -> Array:
        values = target_array(targets, self.targets[0], self.label, self._context)
        if values.dtype.kind in "USO":
            row, text = _first_text(values)
            raise DataError(
                f"{self._context.where(row)}: {self.targets[0]!r} is {text!r:.60}, expected a number for "
                f"{self.label}"
            )
        if values.dtype.kind not in "biuf":
            raise MetricError(
                f"metric {self.label} needs numbers; {self.targets[0]!r} in {self._context.source} is "
                f"{values.dtype}"
            )
        return values.astype(np.float64).reshape(len(values), -1)

    def _check_size(self, wanted: Array, size: int) -> None:
        if wanted.shape[1] != size:
            raise MetricError(
                f"metric {self.label}: a row of output {self._spec['name']!r} has {size} numbers, a "
                f"row of {self.targets[0]!r} in {self._context.source} has {wanted.shape[1]}"
            )


class MeanAbsoluteError(RegressionMetric):
    def score(self, outputs: Outputs, targets: Targets) -> Score:
        predicted, wanted = self._pairs(outputs, targets)
        return MeanScore(abs(predicted - wanted).mean(axis=1))


class MeanSquaredError(RegressionMetric):
    def score(self, outputs: Outputs, targets: Targets) -> Score:
        predicted, wanted = self._pairs(outputs, targets)
        return MeanScore(((predicted - wanted) ** 2).mean(axis=1))


class R2(RegressionMetric):
    """1 - (squared errors / squared deviations from the mean)."""

    higher_is_better = True

    def check_targets(self, targets: Targets) -> None:
        super().check_targets(targets)
        if len(self._target(targets)) < 2:
            raise MetricError(f"metric {self.label} needs at least two rows")

    def score(self, outputs: Outputs, targets: Targets) -> Score:
        predicted, wanted = self._pairs(outputs, targets)
        # Centred first: variances from sums of large numbers would lose their digits.
        centred = wanted - wanted.mean(axis=0)
        terms = np.stack([(predicted - wanted) ** 2, centred, centred**2], axis=1)
        return MeanScore(terms, lambda means: _r2(means.reshape(*means.shape[:-1], 3, -1)))


def _r2(means: Array) -> Array:
    error, mean, square = means[..., 0, :], means[..., 1, :], means[..., 2, :]
    variance = square - mean**2
    with np.errstate(divide="ignore", invalid="ignore"):
        # scikit-learn's convention where the target is constant.
        each = np.where(variance > 0, 1 - error / variance, np.where(error == 0, 1.0, 0.0))
    result: Array = np.where(np.isnan(error), np.nan, each).mean(axis=-1)
    return result


def _choose_output(request: MetricRequest, context: MetricContext) -> Mapping[str, Any]:
    chosen = request.options.get("output")
    if chosen:
        spec = context.output(chosen)
        if not _is_number(spec):
            raise MetricError(
                f"metric {request.text} needs real numbers; output {chosen!r} is {spec['dtype']}"
            )
        return spec
    numbers = [spec for spec in context.outputs if _is_number(spec)]
    floats = [spec for spec in numbers if "float" in spec["dtype"]]
    fitting = floats or numbers
    if len(fitting) == 1:
        return fitting[0]
    found = ", ".join(
        f"{spec['name']!r} {spec['dtype']} {shape_text(spec['shape'])}" for spec in context.outputs
    )
    raise MetricError(
        f"metric {request.text} needs one output of numbers; the model's are {found}"
        + (f"; choose with {request.name}:OUTPUT" if fitting else "")
    )


def _first_text(values: Array) -> tuple[int, str]:
    """The first row with something that is no number."""
    flat = values.reshape(len(values), -1)
    for row, cells in enumerate(flat.tolist()):
        for cell in cells:
            try:
                float(cell)
            except ValueError:
                return row, str(cell)
    return 0, str(flat[0, 0])


def _is_number(spec: Mapping[str, Any]) -> bool:
    return spec["dtype"] != "string" and not spec["dtype"].startswith("complex")
