"""Metrics by name. A family per file; `bind_metrics` makes what people ask for."""

import re
from collections.abc import Sequence
from typing import Final

from neuropod.evaluation.errors import MetricError
from neuropod.evaluation.metrics.classification import TOP_K, Accuracy, LogLoss, RocAuc, TopK
from neuropod.evaluation.metrics.custom import CustomMetric
from neuropod.evaluation.metrics.detection import COCO_AP, CocoAveragePrecision
from neuropod.evaluation.metrics.metric import Metric, MetricContext
from neuropod.evaluation.metrics.regression import R2, MeanAbsoluteError, MeanSquaredError
from neuropod.evaluation.metrics.request import MetricRequest, parse_metric
from neuropod.packaging.nearest_name import nearest_name

__all__ = ["METRIC_NAMES", "Metric", "MetricContext", "bind_metrics", "parse_metrics"]

METRIC_NAMES: Final = (
    "accuracy",
    "top5",
    "log_loss",
    "roc_auc",
    "mae",
    "mse",
    "r2",
    "coco_ap",
    "coco_ap50",
)
"""What people may write; `top5` and `coco_ap50` stand for any k and any IoU."""

_FAMILIES: Final[Sequence[tuple[re.Pattern[str], type[Metric]]]] = (
    (re.compile("accuracy"), Accuracy),
    (TOP_K, TopK),
    (re.compile("log_?loss"), LogLoss),
    (re.compile("roc_?auc"), RocAuc),
    (re.compile("mae"), MeanAbsoluteError),
    (re.compile("mse"), MeanSquaredError),
    (re.compile("r2"), R2),
    (COCO_AP, CocoAveragePrecision),
)


def parse_metrics(texts: Sequence[str]) -> list[MetricRequest]:
    """The requests. MetricError for one that is written wrong, unknown or given twice."""
    requests = [parse_metric(text) for text in texts]
    for index, request in enumerate(requests):
        if request.file is None and _family(request) is None:
            nearest = nearest_name(request.name, METRIC_NAMES)
            hint = f"did you mean {nearest!r}?" if nearest else f"known: {', '.join(METRIC_NAMES)}"
            raise MetricError(f"unknown metric {request.text!r}; {hint} (or FILE.py:FUNCTION)")
        if request.text in texts[:index]:
            raise MetricError(f"metric {request.text!r} is given twice")
    return requests


def bind_metrics(requests: Sequence[MetricRequest], context: MetricContext) -> list[Metric]:
    """The metrics, each with its outputs and targets. MetricError for one that doesn't fit."""
    metrics = [_bind(request, context) for request in requests]
    labels = [metric.label for metric in metrics]
    for metric, request in zip(metrics, requests, strict=True):
        if labels.count(metric.label) > 1:
            metric.label = request.text  # functions of one name in several files
    return metrics


def _bind(request: MetricRequest, context: MetricContext) -> Metric:
    if request.file is not None:
        return CustomMetric(request, context)
    family = _family(request)
    if family is None:
        raise MetricError(f"unknown metric {request.text!r}")
    make: type[Accuracy] = family  # type: ignore[assignment]
    return make(request, context)


def _family(request: MetricRequest) -> type[Metric] | None:
    return next((made for name, made in _FAMILIES if name.fullmatch(request.name)), None)
