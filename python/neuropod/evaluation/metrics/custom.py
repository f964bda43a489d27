"""Metrics of the user's own: a function in a Python file.

    def within_ten_percent(outputs, targets):
        return abs(outputs["price"] - targets["price"]) <= 0.1 * targets["price"]

It gets all outputs and all columns that are no inputs, as dicts of arrays (a list of arrays where rows
differ in shape), and returns a number per row, whose mean is the metric, or one number.
`function.higher_is_better = False` turns the direction. The file is run as the user's own code.
"""

import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from neuropod.evaluation.columns import Rows
from neuropod.evaluation.errors import MetricError
from neuropod.evaluation.metrics.metric import (
    MeanScore,
    Metric,
    MetricContext,
    Outputs,
    Score,
    Targets,
)
from neuropod.evaluation.metrics.request import MetricRequest
from neuropod.packaging.arrays import Array
from neuropod.packaging.nearest_name import did_you_mean

Function = Callable[[dict[str, Rows], dict[str, Rows]], Any]


class CustomMetric(Metric):
    """Loads the function when it's bound."""

    def __init__(self, request: MetricRequest, context: MetricContext) -> None:
        self.label = request.name
        self._text = request.text
        self._function = _load(request)
        self.higher_is_better = bool(getattr(self._function, "higher_is_better", True))
        self.outputs = [spec["name"] for spec in context.outputs]
        self.targets = [name for name in context.columns if name not in context.inputs]

    def check_targets(self, targets: Targets) -> None:
        """Whether they fit is the function's own affair."""

    def score(self, outputs: Outputs, targets: Targets) -> Score:
        values = {name: outputs[name].values() for name in self.outputs}
        wanted = {name: targets[name] for name in self.targets}
        count = next(iter(outputs.values())).count
        result = self._call(values, wanted)
        if result.ndim == 0:
            return _WholeScore(float(result), values, wanted, self._call)
        if result.shape[0] != count or result.size != count:
            raise MetricError(
                f"metric {self._text} returned shape {result.shape} for {count} rows; expected "
                "one number, or one per row"
            )
        return MeanScore(result)

    def _call(self, outputs: dict[str, Rows], targets: dict[str, Rows]) -> Array:
        try:
            result = self._function(outputs, targets)
            if result is not None:
                return np.asarray(result, dtype=np.float64)
        except (Exception, SystemExit) as error:
            raise MetricError(
                f"metric {self._text} failed: {type(error).__name__}: {error}"
            ) from error
        raise MetricError(
            f"metric {self._text} returned None; expected one number, or one per row (is a "
            "`return` missing?)"
        )


class _WholeScore:
    """A number over all rows: each resample calls the function again."""

    def __init__(
        self,
        value: float,
        outputs: dict[str, Rows],
        targets: dict[str, Rows],
        call: Callable[[dict[str, Rows], dict[str, Rows]], Array],
    ) -> None:
        self.value = value
        self._outputs, self._targets, self._call = outputs, targets, call

    def resampled(self, counts: Array) -> Array:
        values = []
        for row_counts in counts:
            rows = np.repeat(np.arange(len(row_counts)), row_counts)
            values.append(
                float(self._call(_taken(self._outputs, rows), _taken(self._targets, rows)))
            )
        return np.asarray(values)


def _taken(columns: dict[str, Rows], rows: Array) -> dict[str, Rows]:
    return {
        name: [values[i] for i in rows] if isinstance(values, list) else values[rows]
        for name, values in columns.items()
    }


def _load(request: MetricRequest) -> Function:
    path = Path(request.file or "")
    if not path.is_file():
        raise MetricError(f"metric {request.text!r}: {path} does not exist")
    try:
        names = runpy.run_path(str(path))
    except (Exception, SystemExit) as error:
        raise MetricError(f"metric {request.text!r}: {path} failed: {error!r}") from error
    function = names.get(request.name)
    if not callable(function):
        known = [name for name, value in names.items() if callable(value) and name[0] != "_"]
        raise MetricError(
            f"metric {request.text!r}: {path} has no function {request.name!r}"
            f"{did_you_mean(request.name, known)}"
        )
    result: Function = function
    return result
