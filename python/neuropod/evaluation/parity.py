"""How far two models' values of one output lie apart."""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from neuropod.evaluation.columns import Column
from neuropod.packaging.arrays import Array
from neuropod.packaging.comparison import computable

WORST_ROWS: Final = 10
_SAMPLED: Final = 2000
_SHOWN_CHARACTERS: Final = 40


@dataclass(frozen=True)
class Tolerance:
    """Floating numbers agree if |a - b| <= absolute + relative * |a|; everything else must be equal.
    NaN agrees with NaN, an infinity with the same one."""

    relative: float = 1e-4
    absolute: float = 1e-5


@dataclass(frozen=True)
class WorstRow:
    """The element of a row that exceeds the tolerance most; `index` None if shapes differ."""

    row: int
    index: tuple[int, ...] | None
    a: str
    b: str
    excess: float


@dataclass
class OutputParity:
    """One output of models A and B over all rows.

    Differences are over elements that are finite in both. `samples`: pairs of numbers, drawn at random.
    """

    name: str
    dtype: str
    rows: int
    elements: int = 0
    agreeing_elements: int = 0
    disagreeing_rows: int = 0
    other_shape_rows: int = 0
    nan_only_a: int = 0
    nan_only_b: int = 0
    nan_both: int = 0
    finite: int = 0
    max_difference: float = 0.0
    sum_difference: float = 0.0
    max_relative: float = 0.0
    sum_relative: float = 0.0
    same_argmax: int | None = None
    worst: list[WorstRow] = field(default_factory=list)
    samples: Array = field(default_factory=lambda: np.empty((0, 2)), repr=False)

    @property
    def is_text(self) -> bool:
        return self.dtype == "string"

    @property
    def disagreement(self) -> float:
        """The share of rows in which at least one element disagrees."""
        return self.disagreeing_rows / self.rows

    @property
    def agreeing_share(self) -> float:
        """The share of elements that agree, of rows of equal shape."""
        return self.agreeing_elements / self.elements if self.elements else 1.0

    @property
    def mean_difference(self) -> float:
        return self.sum_difference / self.finite if self.finite else 0.0

    @property
    def mean_relative(self) -> float:
        return self.sum_relative / self.finite if self.finite else 0.0

    @property
    def argmax_agreement(self) -> float | None:
        """The share of rows whose largest element is at the same place; None where that has no
        meaning."""
        return None if self.same_argmax is None else self.same_argmax / self.rows

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "dtype": self.dtype,
            "elements": self.elements,
            "disagreeing_rows": self.disagreeing_rows,
            "disagreement": self.disagreement,
            "agreeing_elements": self.agreeing_elements,
            "other_shape_rows": self.other_shape_rows,
            "nan_only_a": self.nan_only_a,
            "nan_only_b": self.nan_only_b,
            "nan_both": self.nan_both,
            "max_difference": None if self.is_text else self.max_difference,
            "mean_difference": None if self.is_text else self.mean_difference,
            "max_relative_difference": None if self.is_text else self.max_relative,
            "mean_relative_difference": None if self.is_text else self.mean_relative,
            "argmax_agreement": self.argmax_agreement,
        }


def compare_output(a: Column, b: Column, tolerance: Tolerance, seed: int) -> OutputParity:
    """Compares two columns of one output."""
    return _Comparison(a, b, tolerance, seed).result()


class _Comparison:
    def __init__(self, a: Column, b: Column, tolerance: Tolerance, seed: int) -> None:
        self._a, self._b, self._tolerance = a, b, tolerance
        self._parity = OutputParity(a.name, a.dtype, a.count)
        self._is_scores = (
            "float" in a.dtype and a.shape == b.shape and a.shape is not None and len(a.shape) == 1
        ) and a.shape[0] > 1
        if self._is_scores:
            self._parity.same_argmax = 0
        self._generator = np.random.default_rng(seed)
        self._samples: Array = np.empty((0, 3))  # key, A, B
        self._worst: list[tuple[float, int, WorstRow]] = []

    def result(self) -> OutputParity:
        for first, a, b in self._blocks():
            if a.shape != b.shape:
                self._other_shape(first, a, b)
            elif self._a.is_text:
                self._text(first, a, b)
            else:
                self._numbers(first, a, b)
        self._parity.worst = [entry[2] for entry in sorted(self._worst, reverse=True)]
        self._parity.samples = self._samples[np.argsort(self._samples[:, 0]), 1:]
        return self._parity

    def _blocks(self) -> Iterator[tuple[int, Array, Array]]:
        """(first row, rows of A, rows of B): many rows where all have one shape, else one."""
        if self._a.shape is not None and self._a.shape == self._b.shape:
            for (first, a), (_, b) in zip(self._a.blocks(), self._b.blocks(), strict=True):
                yield first, a, b
        else:
            for row, (a, b) in enumerate(zip(self._a.rows(), self._b.rows(), strict=True)):
                yield row, a[None], b[None]

    def _other_shape(self, row: int, a: Array, b: Array) -> None:
        self._parity.disagreeing_rows += 1
        self._parity.other_shape_rows += 1
        self._note(WorstRow(row, None, f"shape {a.shape[1:]}", f"shape {b.shape[1:]}", np.inf))

    def _text(self, first: int, a: Array, b: Array) -> None:
        agrees = a.astype(object) == b.astype(object)
        self._count(first, a, b, agrees, np.where(agrees, 0.0, np.inf))

    def _numbers(self, first: int, a: Array, b: Array) -> None:
        left, right = computable(a), computable(b)
        with np.errstate(all="ignore"):
            difference = abs(left - right)
            allowed = self._tolerance.absolute + self._tolerance.relative * abs(left)
        nan_a, nan_b = np.isnan(left), np.isnan(right)
        agrees = (left == right) | (nan_a & nan_b)
        if "float" in self._a.dtype or "complex" in self._a.dtype:
            agrees |= difference <= np.where(np.isfinite(allowed), allowed, -1)
        parity = self._parity
        parity.nan_only_a += int(np.count_nonzero(nan_a & ~nan_b))
        parity.nan_only_b += int(np.count_nonzero(nan_b & ~nan_a))
        parity.nan_both += int(np.count_nonzero(nan_a & nan_b))
        finite = np.isfinite(left) & np.isfinite(right)
        self._add_differences(left[finite], difference[finite])
        with np.errstate(invalid="ignore"):
            excess = np.where(agrees, 0.0, np.where(finite, difference - allowed, np.inf))
        # Whole numbers that differ have no tolerance to exceed.
        self._count(first, a, b, agrees, np.where(agrees, 0.0, np.maximum(excess, 1e-300)))
        self._sample(left, right, finite)
        if self._is_scores:
            both = ~(nan_a | nan_b).any(axis=1)
            same = (left.argmax(axis=1) == right.argmax(axis=1)) & both
            parity.same_argmax = (parity.same_argmax or 0) + int(np.count_nonzero(same))

    def _add_differences(self, left: Array, difference: Array) -> None:
        if not difference.size:
            return
        parity = self._parity
        with np.errstate(all="ignore"):
            relative = np.where(difference == 0, 0.0, difference / abs(left))
        known = relative[np.isfinite(relative)]
        parity.finite += difference.size
        parity.max_difference = max(parity.max_difference, float(difference.max()))
        parity.sum_difference += float(difference.sum())
        parity.max_relative = max(parity.max_relative, float(known.max(initial=0.0)))
        parity.sum_relative += float(known.sum())

    def _count(self, first: int, a: Array, b: Array, agrees: Array, excess: Array) -> None:
        parity = self._parity
        parity.elements += agrees.size
        parity.agreeing_elements += int(np.count_nonzero(agrees))
        flat = agrees.reshape(len(agrees), -1)
        wrong = np.flatnonzero(~flat.all(axis=1))
        parity.disagreeing_rows += len(wrong)
        by_row = excess.reshape(len(agrees), -1)
        largest = by_row[wrong].max(axis=1) if len(wrong) else np.empty(0)
        for position in np.argsort(-largest, kind="stable")[:WORST_ROWS]:
            row = int(wrong[position])
            where = np.unravel_index(int(by_row[row].argmax()), a.shape[1:]) if a.ndim > 1 else ()
            index = tuple(int(i) for i in where)
            cell = (row, *index)
            self._note(
                WorstRow(
                    first + row, index, _shown(a[cell]), _shown(b[cell]), float(largest[position])
                )
            )

    def _note(self, found: WorstRow) -> None:
        """Keeps the worst; of equals the earlier row."""
        heapq.heappush(self._worst, (found.excess, -found.row, found))
        if len(self._worst) > WORST_ROWS:
            heapq.heappop(self._worst)

    def _sample(self, left: Array, right: Array, finite: Array) -> None:
        """Every pair gets a random key; those with the smallest keys are kept."""
        if np.iscomplexobj(left):
            return
        pairs = np.stack([left[finite], right[finite]], axis=1).astype(np.float64)
        keyed = np.column_stack([self._generator.random(len(pairs)), pairs])
        candidates = np.concatenate([self._samples, keyed])
        if len(candidates) > _SAMPLED:
            kept = np.argpartition(candidates[:, 0], _SAMPLED)[:_SAMPLED]
            candidates = candidates[kept]
        self._samples = candidates


def _shown(value: Any) -> str:
    text = repr(value.item() if isinstance(value, np.generic) else value)
    if isinstance(value, np.floating):
        text = f"{float(value):.7g}"
    return text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "…"
