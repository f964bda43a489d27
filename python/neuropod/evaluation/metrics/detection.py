"""COCO's average precision: which outputs and columns it takes.

Outputs for each image: boxes (n, 4); a score of each box (n,) and its class (n,), or scores of each
class (n, classes). Columns for each image: boxes (n, 4) as left, top, right, bottom; classes (n,);
optionally crowd (n,). In arrays of one shape, boxes with a class below 0 or a NaN are padding.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from neuropod.evaluation.columns import Column
from neuropod.evaluation.datasets.coco_annotations import BOXES, CLASS_NAMES, CLASSES, CROWD
from neuropod.evaluation.errors import DataError, MetricError
from neuropod.evaluation.metrics.average_precision import (
    IOU_THRESHOLDS,
    AveragePrecisionScore,
    Detections,
    GroundTruth,
)
from neuropod.evaluation.metrics.metric import Metric, MetricContext, Outputs, Score, Targets
from neuropod.evaluation.metrics.request import MetricRequest
from neuropod.packaging.arrays import Array

COCO_AP = re.compile(r"coco_ap(?P<iou>\d\d)?")
_FORMATS = ("xyxy", "xywh")


class CocoAveragePrecision(Metric):
    """`coco_ap`: the mean over IoU 0.5, 0.55 … 0.95; `coco_ap50`: at IoU 0.5 (or another)."""

    higher_is_better = True

    def __init__(self, request: MetricRequest, context: MetricContext) -> None:
        request.refuse_other_options(
            "boxes", "scores", "classes", "format", "true_boxes", "true_classes", "crowd"
        )
        self.label = request.text
        self._context = context
        match = COCO_AP.fullmatch(request.name)
        iou = match["iou"] if match else None
        self._thresholds = IOU_THRESHOLDS if iou is None else np.asarray([int(iou) / 100])
        options = request.options
        self._format = options.get("format", _FORMATS[0])
        if self._format not in _FORMATS:
            raise MetricError(f"metric {request.text!r}: format is {' or '.join(_FORMATS)}")
        self._boxes = self._output(options.get("boxes"), "boxes (n, 4)", _is_boxes)
        self._scores = self._output(options.get("scores"), "scores", self._is_scores)
        self._classes: str | None = None
        if not self._has_score_per_class():
            self._classes = self._output(options.get("classes"), "classes", self._is_classes)
        self.outputs = [n for n in (self._boxes, self._scores, self._classes) if n is not None]
        self._true_boxes = context.column(options.get("true_boxes", BOXES))
        self._true_classes = self._class_column(options.get("true_classes"))
        crowd = options.get("crowd", CROWD)
        self._crowd = (
            context.column(crowd) if "crowd" in options or crowd in context.columns else None
        )
        columns = (self._true_boxes, self._true_classes, self._crowd)
        self.targets = [name for name in columns if name is not None]

    def check_targets(self, targets: Targets) -> None:
        self._ground_truth(targets)

    def score(self, outputs: Outputs, targets: Targets) -> Score:
        truth = self._ground_truth(targets)
        detections = [self._detections(outputs, row) for row in range(outputs[self._boxes].count)]
        return AveragePrecisionScore(detections, truth, self._thresholds)

    def _output(self, chosen: str | None, what: str, fits: Any) -> str:
        if chosen:
            return str(self._context.output(chosen)["name"])
        named = [s for s in self._context.outputs if fits(s)]
        if len(named) > 1:
            # Of several that fit, the one that is called so.
            word = what.split()[0].rstrip("s")
            named = [s for s in named if word in s["name"].lower()] or named
        if len(named) == 1:
            return str(named[0]["name"])
        found = ", ".join(repr(spec["name"]) for spec in (named or self._context.outputs))
        raise MetricError(
            f"metric {self.label} needs an output with {what}; "
            f"{'several fit' if named else 'the model has'}: {found}; choose with "
            f"{self.label.partition(':')[0]}:{what.split()[0]}=OUTPUT"
        )

    def _is_scores(self, spec: Mapping[str, Any]) -> bool:
        return "float" in spec["dtype"] and spec["name"] != self._boxes and bool(spec["shape"])

    def _is_classes(self, spec: Mapping[str, Any]) -> bool:
        whole = "int" in spec["dtype"] or spec["dtype"] == "string"
        return whole and self._context.row_shapes[spec["name"]] == _first(
            self._context.row_shapes[self._boxes]
        )

    def _has_score_per_class(self) -> bool:
        return len(self._context.row_shapes[self._scores]) == 2

    def _class_column(self, chosen: str | None) -> str:
        if chosen:
            return self._context.column(chosen)
        # Scores of each class have indices, which are looked up in the classes' names.
        by_name = self._says_names or self._classes is None
        known = CLASS_NAMES in self._context.columns
        return self._context.column(CLASS_NAMES if by_name and known else CLASSES)

    @property
    def _says_names(self) -> bool:
        classes = self._classes
        return classes is not None and bool(self._context.output(classes)["dtype"] == "string")

    def _ground_truth(self, targets: Targets) -> list[GroundTruth]:
        boxes, classes = targets[self._true_boxes], targets[self._true_classes]
        crowd = targets[self._crowd] if self._crowd is not None else None
        found = []
        for row in range(len(boxes)):
            where = self._context.where(row)
            image = _boxes(np.asarray(boxes[row]), self._true_boxes, where)
            label = np.asarray(classes[row]).reshape(-1)
            ignored = (
                np.zeros(len(label), bool)
                if crowd is None
                else np.asarray(crowd[row]).reshape(-1).astype(bool)
            )
            if not len(image) == len(label) == len(ignored):
                raise DataError(
                    f"{where}: {len(image)} boxes in {self._true_boxes!r} but {len(label)} classes "
                    f"in {self._true_classes!r}"
                )
            kept = ~np.isnan(image).any(axis=1)
            if label.dtype.kind in "iuf":
                kept &= label >= 0
            found.append(
                GroundTruth(image[kept], self._class_keys(label[kept], where), ignored[kept])
            )
        if not any(len(image.boxes) for image in found):
            raise MetricError(f"metric {self.label}: {self._context.source} holds no boxes")
        return found

    def _class_keys(self, labels: Array, where: str) -> Array:
        """Classes as the model says them: names, or whole numbers."""
        names = self._context.classes or ()
        if labels.dtype.kind not in "USO":
            if not self._says_names:
                return labels.astype(np.int64)
            if labels.size and not labels.max() < len(names):
                raise DataError(
                    f"{where}: class {labels.max()} in {self._true_classes!r}, but output "
                    f"{self._classes!r} says names; --classes says which name each class has"
                )
            return np.asarray([names[index] for index in labels.tolist()], dtype=object)
        if self._says_names:
            return np.asarray([str(label) for label in labels.tolist()], dtype=object)
        positions = {name: index for index, name in enumerate(names)}
        for label in labels.tolist():
            if label not in positions:
                raise DataError(f"{where}: unknown label {label!r}; --classes says which there are")
        return np.asarray([positions[label] for label in labels.tolist()], np.int64)

    def _detections(self, outputs: Outputs, row: int) -> Detections:
        where = self._context.where(row)
        boxes = _boxes(outputs[self._boxes].row(row), self._boxes, where)
        if self._format == "xywh":
            boxes = np.concatenate([boxes[:, :2], boxes[:, :2] + boxes[:, 2:]], axis=1)
        scores = outputs[self._scores].row(row).astype(np.float64)
        if self._classes is None:
            scores = scores.reshape(len(boxes), -1)
            classes: Array = scores.argmax(axis=1).astype(np.int64)
            scores = scores.max(axis=1, initial=-np.inf)
        else:
            classes = _keys(outputs[self._classes], row)
            scores = scores.reshape(-1)
        if not len(boxes) == len(scores) == len(classes):
            raise MetricError(
                f"metric {self.label}, {where}: {len(boxes)} boxes, {len(scores)} scores and "
                f"{len(classes)} classes; expected equally many"
            )
        kept = ~(np.isnan(boxes).any(axis=1) | np.isnan(scores))
        return Detections(boxes[kept], scores[kept], classes[kept])


def _boxes(array: Array, name: str, where: str) -> Array:
    if array.size % 4 or (array.size and array.shape[-1] != 4):
        raise DataError(f"{where}: {name!r} has shape {array.shape}, expected boxes (n, 4)")
    return array.reshape(-1, 4).astype(np.float64)


def _keys(column: Column, row: int) -> Array:
    values = column.row(row).reshape(-1)
    return np.asarray(values.tolist(), dtype=object) if column.is_text else values.astype(np.int64)


def _is_boxes(spec: Mapping[str, Any]) -> bool:
    return len(spec["shape"]) >= 2 and spec["shape"][-1] == 4


def _first(shape: Sequence[Any]) -> list[Any]:
    return list(shape[:-1])
