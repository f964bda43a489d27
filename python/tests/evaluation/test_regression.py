import numpy as np
import pytest
from scoring import value_of
from sklearn import metrics as reference

from neuropod.evaluation import DataError, MetricError


@pytest.mark.parametrize("shape", [(200,), (200, 1), (200, 3), (200, 2, 2)])
def test_errors_are_scikit_learns(shape):
    rng = np.random.default_rng(0)
    wanted = 1000 + rng.normal(size=shape)
    found = (wanted + rng.normal(0, 0.3, shape)).astype("float32")
    flat = wanted.reshape(200, -1), found.reshape(200, -1).astype("float64")
    for name, function in (
        ("mae", reference.mean_absolute_error),
        ("mse", reference.mean_squared_error),
        ("r2", reference.r2_score),
    ):
        value = value_of(name, {"y": found}, {"price": wanted})
        assert value == pytest.approx(function(*flat), rel=1e-9), name


def test_r2_of_a_constant_target_is_scikit_learns():
    wanted = np.ones((3, 2))
    for found in (np.ones((3, 2)), np.asarray([[1.0, 2], [1, 1], [1, 1]])):
        assert value_of("r2", {"y": found}, {"t": wanted}) == reference.r2_score(wanted, found)


def test_the_targets_shape_may_leave_out_ones():
    assert value_of("mae", {"y": np.ones((4, 1))}, {"price": np.zeros(4)}) == 1


def test_whole_numbers_count_where_no_output_is_floating():
    assert value_of("mse", {"n": np.asarray([1, 2])}, {"t": np.asarray([1, 4])}) == 2


def test_nan_makes_the_metric_nan():
    for name in ("mae", "mse", "r2"):
        assert np.isnan(value_of(name, {"y": np.asarray([1, np.nan])}, {"t": np.asarray([1.0, 2])}))


def test_what_does_not_fit_is_refused():
    with pytest.raises(
        MetricError, match=r"row of output 'y' has 2 numbers, a row of 't' in data.csv has 3"
    ):
        value_of("mae", {"y": np.ones((4, 2))}, {"t": np.ones((4, 3))})
    with pytest.raises(
        DataError, match=r"data.csv line 3: 't' is 'cat', expected a number for mae"
    ):
        value_of("mae", {"y": np.ones(2)}, {"t": np.asarray(["1.5", "cat"])})
    with pytest.raises(
        MetricError, match=r"one output of numbers; the model's are 'a' .*choose with mae:OUTPUT"
    ):
        value_of("mae", {"a": np.ones(2), "b": np.ones(2)}, {"t": np.ones(2)})
    with pytest.raises(MetricError, match=r"output 's' is string"):
        value_of("mae:s", {"s": np.asarray(["a"])}, {"t": np.ones(1)})
    with pytest.raises(MetricError, match=r"rows of 't' in data.csv differ in shape"):
        value_of("mae", {"y": np.ones(2)}, {"t": [np.ones(1), np.ones(2)]})
    with pytest.raises(MetricError, match=r"'y' has \(1,\) in row 0 and \(2,\) in row 1"):
        value_of(
            "mae",
            {"y": [np.ones(1), np.ones(2)]},
            {"t": np.ones(2)},
            specs=[{"name": "y", "dtype": "float64", "shape": ["batch", None]}],
        )
