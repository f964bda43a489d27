"""Average precision as COCO defines it (cocodataset.org, "Detection Evaluation"), for all areas and at
most 100 detections of a class per image.

Detections are matched in the order of their scores, each to the free box of its class with the largest
IoU that reaches the threshold. A crowd box takes any number of detections, which then count neither as
right nor as wrong. Precision is made monotonous and read at 101 recalls; the mean is over classes that
have boxes, and over thresholds.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from neuropod.packaging.arrays import Array

IOU_THRESHOLDS: Final = np.linspace(0.5, 0.95, 10)
MAX_DETECTIONS: Final = 100
_RECALLS: Final = np.linspace(0.0, 1.0, 101)


@dataclass(frozen=True)
class Detections:
    """Of one image. boxes: float64 (n, 4), left, top, right, bottom. scores, classes: (n,)."""

    boxes: Array
    scores: Array
    classes: Array


@dataclass(frozen=True)
class GroundTruth:
    """Of one image. boxes: float64 (n, 4), left, top, right, bottom. classes, crowd: (n,)."""

    boxes: Array
    classes: Array
    crowd: Array


class AveragePrecisionScore:
    """The mean of the average precisions; resamples are of images."""

    def __init__(
        self,
        detections: Sequence[Detections],
        truth: Sequence[GroundTruth],
        thresholds: Array = IOU_THRESHOLDS,
    ) -> None:
        self._images = len(truth)
        self._curves = [
            _ClassCurve(detections, truth, key, thresholds)
            for key in sorted({key for image in truth for key in image.classes.tolist()})
        ]

    @property
    def value(self) -> float:
        return float(self.resampled(np.ones((1, self._images), np.int64))[0])

    def resampled(self, counts: Array) -> Array:
        precisions = np.stack([curve.precisions(counts) for curve in self._curves])
        with warnings.catch_warnings():
            # A resample without a single box has no precision.
            warnings.simplefilter("ignore", RuntimeWarning)
            mean: Array = np.nanmean(precisions, axis=0)
        return mean


class _ClassCurve:
    """One class: its detections of all images by falling score, and which of them are right."""

    def __init__(
        self,
        detections: Sequence[Detections],
        truth: Sequence[GroundTruth],
        key: Any,
        thresholds: Array,
    ) -> None:
        scores, right, counted, images = [], [], [], []
        self._boxes = np.zeros(len(truth))  # that can be found, by image
        for index, (found, wanted) in enumerate(zip(detections, truth, strict=True)):
            of_class = wanted.classes == key
            boxes, crowd = wanted.boxes[of_class], wanted.crowd[of_class]
            self._boxes[index] = np.count_nonzero(~crowd)
            mine = np.flatnonzero(found.classes == key)
            mine = mine[np.argsort(-found.scores[mine], kind="stable")][:MAX_DETECTIONS]
            matched, ignored = _match(found.boxes[mine], boxes, crowd, thresholds)
            scores.append(found.scores[mine])
            right.append(matched & ~ignored)
            counted.append(~ignored)
            images.append(np.full(len(mine), index))
        order = np.argsort(-np.concatenate(scores), kind="stable")
        self._right = np.concatenate(right, axis=1)[:, order].astype(np.float64)
        self._counted = np.concatenate(counted, axis=1)[:, order].astype(np.float64)
        self._image_of = np.concatenate(images)[order]

    def precisions(self, counts: Array) -> Array:
        """The mean over thresholds, (resamples,); NaN where no box of the class is drawn."""
        wanted = counts @ self._boxes
        weights = counts[:, self._image_of].astype(np.float64)
        total = np.zeros(len(counts))
        for right, counted in zip(self._right, self._counted, strict=True):
            hits = np.cumsum(weights * right, axis=1)
            shown = np.cumsum(weights * counted, axis=1)
            precision = hits / (shown + np.spacing(1))
            # The best precision at this recall or a higher one.
            precision = np.maximum.accumulate(precision[:, ::-1], axis=1)[:, ::-1]
            total += [
                _mean_at_recalls(hits[i] / wanted[i], precision[i]) if wanted[i] else np.nan
                for i in range(len(counts))
            ]
        return total / len(self._right)


def _mean_at_recalls(recall: Array, precision: Array) -> float:
    first = np.searchsorted(recall, _RECALLS, side="left")
    reached = first < len(recall)
    return float(precision[first[reached]].sum() / len(_RECALLS))


def _match(boxes: Array, truth: Array, crowd: Array, thresholds: Array) -> tuple[Array, Array]:
    """Which detections, by falling score, are matched, and to a crowd; bool (thresholds, n) each."""
    matched = np.zeros((len(thresholds), len(boxes)), bool)
    ignored = np.zeros_like(matched)
    if not len(boxes) or not len(truth):
        return matched, ignored
    order = np.argsort(crowd, kind="stable")  # ordinary boxes before crowds
    crowd = crowd[order]
    overlaps = _overlaps(boxes, truth[order], crowd)
    largest = overlaps.max(axis=1)
    for t, threshold in enumerate(thresholds):
        taken = np.zeros(len(truth), bool)
        for d in np.flatnonzero(largest >= min(threshold, 1 - 1e-10)):
            row = overlaps[d]
            free = (~taken | crowd) & (row >= min(threshold, 1 - 1e-10))
            candidates = np.flatnonzero(free & ~crowd)
            if not len(candidates):
                candidates = np.flatnonzero(free)
            if not len(candidates):
                continue
            # Of equal overlaps the last.
            best = candidates[::-1][np.argmax(row[candidates[::-1]])]
            taken[best] = matched[t, d] = True
            ignored[t, d] = crowd[best]
    return matched, ignored


def _overlaps(boxes: Array, truth: Array, crowd: Array) -> Array:
    """IoU, (boxes, truth); with a crowd the share of the detection that lies in it."""
    left_top = np.maximum(boxes[:, None, :2], truth[None, :, :2])
    right_bottom = np.minimum(boxes[:, None, 2:], truth[None, :, 2:])
    common = np.clip(right_bottom - left_top, 0, None).prod(axis=2)
    area = (boxes[:, 2:] - boxes[:, :2]).prod(axis=1)[:, None]
    true_area = (truth[:, 2:] - truth[:, :2]).prod(axis=1)[None]
    union = np.where(crowd[None], area, area + true_area - common)
    with np.errstate(divide="ignore", invalid="ignore"):
        result: Array = np.where(union > 0, common / union, 0.0)
    return result
