import numpy as np
import pytest
from scoring import repeated, score_of, value_of
from test_average_precision import SPECS, random_images

from neuropod.evaluation.bootstrap import interval, resample
from neuropod.evaluation.progress import Progress

RNG = np.random.default_rng(5)
LABELS = RNG.integers(0, 4, 60)
SCORES = RNG.random((60, 4)) + np.eye(4)[LABELS]
SCORES /= SCORES.sum(axis=1, keepdims=True)
TARGET = RNG.normal(size=(60, 2))
FOUND = TARGET + RNG.normal(0, 0.3, (60, 2))

CASES = [
    *(
        (name, {"p": SCORES}, {"label": LABELS})
        for name in ("accuracy", "top2", "log_loss", "roc_auc")
    ),
    *((name, {"y": FOUND}, {"t": TARGET}) for name in ("mae", "mse", "r2")),
]


@pytest.mark.parametrize(("name", "outputs", "targets"), CASES, ids=[case[0] for case in CASES])
def test_a_resample_is_the_metric_of_the_rows_drawn(name, outputs, targets):
    score = score_of(name, outputs, targets)
    counts = np.random.default_rng(0).multinomial(60, [1 / 60] * 60, size=5)
    for drawn, value in zip(counts, score.resampled(counts), strict=True):
        rows = [{key: repeated(v, drawn) for key, v in side.items()} for side in (outputs, targets)]
        assert value == pytest.approx(value_of(name, *rows), abs=1e-12)


def test_average_precision_resamples_images():
    found, truth = random_images(3, images=12)
    score = score_of("coco_ap", found, truth, specs=SPECS)
    counts = np.random.default_rng(0).multinomial(12, [1 / 12] * 12, size=4)
    for drawn, value in zip(counts, score.resampled(counts), strict=True):
        rows = [{key: repeated(v, drawn) for key, v in side.items()} for side in (found, truth)]
        # Where scores are equal, the order of images decides; repeating keeps it.
        assert value == pytest.approx(value_of("coco_ap", *rows, specs=SPECS), abs=0.02)


def test_the_interval_is_that_of_the_mean():
    values = np.random.default_rng(2).normal(size=400)
    score = score_of("mae", {"y": values}, {"t": np.zeros(400)})
    (drawn,) = resample([score], 400, 4000, 0, Progress())
    low, high = interval(drawn)
    error = abs(values).std() / np.sqrt(400)
    assert low == pytest.approx(score.value - 1.96 * error, abs=0.2 * error)
    assert high == pytest.approx(score.value + 1.96 * error, abs=0.2 * error)


def test_the_same_seed_draws_the_same_rows_for_every_score():
    score = score_of("mae", {"y": FOUND}, {"t": TARGET})
    first, second = resample([score, score], 60, 50, 7, Progress())
    assert np.array_equal(first, second)
    assert np.array_equal(first, resample([score], 60, 50, 7, Progress())[0])
    assert not np.array_equal(first, resample([score], 60, 50, 8, Progress())[0])


def test_without_resamples_there_is_no_interval():
    score = score_of("mae", {"y": FOUND}, {"t": TARGET})
    (drawn,) = resample([score], 60, 0, 0, Progress())
    assert interval(drawn) is None
