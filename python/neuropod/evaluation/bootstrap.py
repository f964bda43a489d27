"""Bootstrap intervals: the rows are drawn again with replacement, many times, by a seeded generator.

Every score of one evaluation sees the same draws, so that differences between packages are paired.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np

from neuropod.evaluation.metrics.metric import Score
from neuropod.evaluation.progress import Progress
from neuropod.packaging.arrays import Array

LEVEL: Final = 0.95
_CELLS_AT_ONCE: Final = 1 << 21


def resample(
    scores: Sequence[Score], rows: int, resamples: int, seed: int, progress: Progress
) -> list[Array]:
    """The values of each score, float64 (resamples,), over the same draws of `rows` rows."""
    generator = np.random.default_rng(seed)
    values: list[list[Array]] = [[] for _ in scores]
    step = max(1, _CELLS_AT_ONCE // rows)
    with progress.task("bootstrap", resamples) as advance:
        for first in range(0, resamples, step):
            counts = _draw(generator, min(step, resamples - first), rows)
            for score, found in zip(scores, values, strict=True):
                found.append(score.resampled(counts))
            advance(len(counts))
    return [np.concatenate(found) if found else np.empty(0) for found in values]


def interval(values: Array) -> tuple[float, float] | None:
    """The percentile interval at LEVEL; None without values."""
    known = values[~np.isnan(values)]
    if len(known) == 0:
        return None
    tail = 100 * (1 - LEVEL) / 2
    low, high = np.percentile(known, [tail, 100 - tail])
    return float(low) + 0.0, float(high) + 0.0  # no -0


def _draw(generator: np.random.Generator, resamples: int, rows: int) -> Array:
    """How often each row is drawn, int64 (resamples, rows)."""
    drawn = generator.integers(0, rows, (resamples, rows))
    drawn += np.arange(resamples)[:, None] * rows
    return np.bincount(drawn.reshape(-1), minlength=resamples * rows).reshape(resamples, rows)
