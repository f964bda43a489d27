"""The area under the ROC curve, for weighted rows."""

import warnings

import numpy as np

from neuropod.packaging.arrays import Array


class RocAucScore:
    """The mean over columns of the probability that a positive row scores above a negative one, a tie
    counting one half. Columns without positives or negatives don't count.

    scores: float64 (rows, columns). positive: bool (rows, columns).
    """

    def __init__(self, scores: Array, positive: Array) -> None:
        self._has_nan = bool(np.isnan(scores).any())
        self._rows = len(scores)
        self._columns = [
            _SortedColumn(scores[:, c], positive[:, c]) for c in range(scores.shape[1])
        ]

    @property
    def value(self) -> float:
        return float(self.resampled(np.ones((1, self._rows), np.int64))[0])

    def resampled(self, counts: Array) -> Array:
        if self._has_nan:
            return np.full(len(counts), np.nan)
        areas = np.stack([column.areas(counts) for column in self._columns])
        with warnings.catch_warnings():
            # A resample in which no column has both kinds has no area.
            warnings.simplefilter("ignore", RuntimeWarning)
            mean: Array = np.nanmean(areas, axis=0)
        return mean


class _SortedColumn:
    def __init__(self, scores: Array, positive: Array) -> None:
        self._order = np.argsort(scores, kind="stable")
        ordered = scores[self._order]
        self._positive = positive[self._order].astype(np.float64)
        self._ties = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])

    def areas(self, counts: Array) -> Array:
        weights = counts[:, self._order].astype(np.float64)
        positive = np.add.reduceat(weights * self._positive, self._ties, axis=1)
        negative = np.add.reduceat(weights, self._ties, axis=1) - positive
        below = np.cumsum(negative, axis=1) - negative
        wins = (positive * (below + negative / 2)).sum(axis=1)
        pairs = positive.sum(axis=1) * negative.sum(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            area: Array = np.where(pairs > 0, wins / pairs, np.nan)
        return area
