"""Accuracy, top-k accuracy, log loss and ROC-AUC.

Outputs: `scores` of each class, (rows, classes); one probability of class 1, (rows,) floating; or the
class itself, (rows,) of whole numbers or strings.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from neuropod.evaluation.columns import Column
from neuropod.evaluation.errors import MetricError
from neuropod.evaluation.metrics.class_targets import class_indices, class_names
from neuropod.evaluation.metrics.metric import (
    MeanScore,
    Metric,
    MetricContext,
    Outputs,
    Score,
    Targets,
    as_floats,
)
from neuropod.evaluation.metrics.ranking import RocAucScore
from neuropod.evaluation.metrics.request import MetricRequest
from neuropod.packaging.arrays import Array
from neuropod.packaging.dtypes import numpy_dtype

TOP_K = re.compile(r"top-?([1-9]\d*)")
_SUM_TOLERANCE = 1e-3
_HALF = 0.5

_SCORES, _PROBABILITY, _CLASS = "scores of each class", "a probability", "a class"


class ClassificationMetric(Metric):
    """What the four have in common: one output, one target of classes."""

    higher_is_better = True
    kinds: Sequence[str] = (_SCORES, _PROBABILITY)

    def __init__(self, request: MetricRequest, context: MetricContext) -> None:
        request.refuse_other_options("output", "target")
        self.label = request.text
        self._context = context
        self.output = self._choose_output(request)
        self._kind = _kind(self.output, context)
        target = context.choose_target(
            request.name, self.output["name"], request.options.get("target")
        )
        self.outputs, self.targets = [self.output["name"]], [target]

    def check_targets(self, targets: Targets) -> None:
        if self._is_text:
            class_names(targets, self.targets[0], self.label, self._context)
        else:
            self._indices(targets, self._class_count)

    @property
    def _is_text(self) -> bool:
        return bool(self.output["dtype"] == "string")

    @property
    def _class_count(self) -> int | None:
        shape = self._context.row_shapes[self.output["name"]]
        if self._kind == _SCORES:
            return shape[0] if isinstance(shape[0], int) else None
        return 2 if self._kind == _PROBABILITY else None

    def _indices(self, targets: Targets, count: int | None) -> Array:
        return class_indices(targets, self.targets[0], self.label, self._context, count)

    def _scores(self, outputs: Outputs) -> Array:
        """float64 (rows, classes) or, for one probability, (rows,)."""
        scores = as_floats(outputs[self.output["name"]], self.label)
        if self._kind == _PROBABILITY:
            return scores.reshape(len(scores))
        return scores.reshape(len(scores), -1)

    def _check_each(self, probabilities: Array) -> None:
        """Raises MetricError if one isn't from 0 to 1; NaN may be."""
        wrong = (probabilities < 0) | (probabilities > 1)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise MetricError(
                f"metric {self.label} needs probabilities, from 0 to 1; output "
                f"{self.output['name']!r} for {self._context.where(row)} is "
                f"{probabilities[row]:.4g} (is it a logit?)"
            )

    def _choose_output(self, request: MetricRequest) -> Mapping[str, Any]:
        chosen = request.options.get("output")
        if chosen:
            spec = self._context.output(chosen)
            if _kind(spec, self._context) not in self.kinds:
                raise MetricError(self._misfit(request, f"output {_described(spec)} is none"))
            return spec
        for kind in self.kinds:
            fitting = [spec for spec in self._context.outputs if _kind(spec, self._context) == kind]
            if len(fitting) > 1:
                names = ", ".join(repr(spec["name"]) for spec in fitting)
                raise MetricError(
                    f"metric {request.text}: several outputs fit: {names}; choose with "
                    f"{request.name}:OUTPUT"
                )
            if fitting:
                return fitting[0]
        found = ", ".join(_described(spec) for spec in self._context.outputs)
        raise MetricError(self._misfit(request, f"the model's outputs are {found}"))

    def _misfit(self, request: MetricRequest, found: str) -> str:
        return (
            f"metric {request.text} needs an output that is, for each row, "
            f"{' or '.join(self.kinds)}; {found}"
        )


class Accuracy(ClassificationMetric):
    """The share of rows whose class is right. One probability means class 1 from 0.5 on."""

    kinds = (_CLASS, _SCORES, _PROBABILITY)

    def score(self, outputs: Outputs, targets: Targets) -> Score:
        column = outputs[self.output["name"]]
        if self._is_text:
            return MeanScore(_texts(column) == self._names(targets))
        if self._kind == _CLASS:
            predicted = as_floats(column, self.label).reshape(column.count)
            return MeanScore(predicted == self._indices(targets, None))
        scores = self._scores(outputs)
        if scores.ndim == 1:
            self._check_each(scores)
            right = (scores >= _HALF) == (self._indices(targets, 2) == 1)
            return MeanScore(right & ~np.isnan(scores))
        indices = self._indices(targets, scores.shape[1])
        # A row with NaN has no best class.
        return MeanScore((scores.argmax(axis=1) == indices) & ~np.isnan(scores).any(axis=1))

    def _names(self, targets: Targets) -> Array:
        names = class_names(targets, self.targets[0], self.label, self._context)
        return np.asarray(names, dtype=object)


class TopK(ClassificationMetric):
    """The share of rows whose class is among the k with the highest scores. Of equal scores those of
    higher classes come first, as scikit-learn has it."""

    kinds = (_SCORES,)

    def __init__(self, request: MetricRequest, context: MetricContext) -> None:
        super().__init__(request, context)
        match = TOP_K.fullmatch(request.name)
        self._k = int(match[1]) if match else 1
        if self._class_count is not None and self._k >= self._class_count:
            raise MetricError(
                f"metric {request.text}: output {_described(self.output)} has {self._class_count} "
                f"classes, of which {self._k} are always right; choose a smaller k"
            )

    def score(self, outputs: Outputs, targets: Targets) -> Score:
        scores = self._scores(outputs)
        indices = self._indices(targets, scores.shape[1])
        best = np.argsort(scores, axis=1, kind="stable")[:, ::-1][:, : self._k]
        right = (best == indices[:, None]).any(axis=1)
        return MeanScore(right & ~np.isnan(scores).any(axis=1))


class LogLoss(ClassificationMetric):
    """The mean of -log of the right class's probability, which is kept off 0 by the dtype's epsilon."""

    higher_is_better = False

    def score(self, outputs: Outputs, targets: Targets) -> Score:
        scores = self._scores(outputs)
        if scores.ndim == 1:
            self._check_each(scores)
            pairs = np.stack([1 - scores, scores], axis=1)
        else:
            self._check_probabilities(scores)
            pairs = scores
        dtype = numpy_dtype(self.output["dtype"])
        epsilon = float(np.finfo(dtype if dtype.kind == "f" else np.float32).eps)
        indices = self._indices(targets, pairs.shape[1])
        right = pairs[np.arange(len(pairs)), indices]
        return MeanScore(-np.log(np.clip(right, epsilon, 1 - epsilon)))

    def _check_probabilities(self, scores: Array) -> None:
        sums = scores.sum(axis=1)
        wrong = (abs(sums - 1) > _SUM_TOLERANCE) | ((scores < 0) | (scores > 1)).any(axis=1)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise MetricError(
                f"metric {self.label} needs probabilities; output {self.output['name']!r} for "
                f"{self._context.where(row)} sums to {sums[row]:.4g} and lies between "
                f"{scores[row].min():.4g} and {scores[row].max():.4g} (are they logits?)"
            )


class RocAuc(ClassificationMetric):
    """The area under the ROC curve; with more than two classes the mean of each against the rest."""

    def check_targets(self, targets: Targets) -> None:
        super().check_targets(targets)
        found = np.unique(self._indices(targets, self._class_count))
        if len(found) < 2:
            raise MetricError(
                f"metric {self.label} needs rows of at least two classes; {self.targets[0]!r} in "
                f"{self._context.source} is {found[0]} in every row"
            )

    def score(self, outputs: Outputs, targets: Targets) -> Score:
        scores = self._scores(outputs)
        count = 2 if scores.ndim == 1 else scores.shape[1]
        indices = self._indices(targets, count)
        if count == 2:
            pairs = scores.reshape(len(scores), -1)
            # A NaN of class 0 makes the row's answer NaN, too.
            last = np.where(np.isnan(pairs).any(axis=1), np.nan, pairs[:, -1])
            return RocAucScore(last[:, None], (indices == 1)[:, None])
        return RocAucScore(scores, indices[:, None] == np.arange(count))


def _kind(spec: Mapping[str, Any], context: MetricContext) -> str | None:
    shape = list(context.row_shapes[spec["name"]])
    floating = spec["dtype"] in ("float16", "bfloat16", "float32", "float64")
    single = not shape or shape == [1]
    if floating:
        return _PROBABILITY if single else _SCORES if len(shape) == 1 else None
    return _CLASS if single and not spec["dtype"].startswith("complex") else None


def _texts(column: Column) -> Array:
    values = column.values()
    return np.asarray(values, dtype=object).reshape(column.count)


def _described(spec: Mapping[str, Any]) -> str:
    from neuropod.problem_api import shape_text

    return f"{spec['name']!r} {spec['dtype']} {shape_text(spec['shape'])}"
