import numpy as np
import pytest

from neuropod.evaluation.columns import ColumnFolder
from neuropod.evaluation.parity import Tolerance, compare_output


def parity(tmp_path, a, b, **tolerance):
    columns = []
    for name, rows in (("a", a), ("b", b)):
        (tmp_path / name).mkdir()
        folder = ColumnFolder(tmp_path / name)
        folder.append({"y": rows})
        columns.append(folder.close()["y"])
    return compare_output(*columns, Tolerance(**tolerance), seed=0)


def test_equal_numbers_agree(tmp_path):
    values = np.random.default_rng(0).random((5000, 3)).astype("float32")
    found = parity(tmp_path, values, values)
    assert (found.disagreement, found.agreeing_share, found.max_difference) == (0, 1, 0)
    assert found.elements == 15000 and found.argmax_agreement == 1
    assert found.worst == []


def test_floats_within_the_tolerance_agree(tmp_path):
    a = np.asarray([1.0, 1.0, 0.0, 0.0, 100.0])
    b = np.asarray([1.0009, 1.1, 1e-6, 1e-3, 100.05])
    found = parity(tmp_path, a, b, relative=1e-3, absolute=1e-5)
    assert found.disagreeing_rows == 2
    assert [(worst.row, worst.a, worst.b) for worst in found.worst] == [
        (1, "1", "1.1"),
        (3, "0", "0.001"),
    ]
    assert found.max_difference == pytest.approx(0.1)
    assert found.mean_difference == pytest.approx(abs(a - b).mean())
    assert found.max_relative == pytest.approx(0.1)


def test_whole_numbers_and_texts_agree_only_if_equal(tmp_path):
    found = parity(tmp_path, np.asarray([10**15, 5]), np.asarray([10**15 + 1, 5]), absolute=10.0)
    assert found.disagreeing_rows == 1 and found.max_difference == 1
    texts = np.asarray(["cat", "dog"]), np.asarray(["cat", "Dog"])
    (tmp_path / "t").mkdir()
    found = parity(tmp_path / "t", *texts)
    assert found.disagreeing_rows == 1
    assert (found.worst[0].a, found.worst[0].b) == ("'dog'", "'Dog'")


def test_nan_agrees_with_nan_only_and_is_counted(tmp_path):
    a = np.asarray([[1, np.nan], [np.nan, 2], [3, 4], [5, 6]])
    b = np.asarray([[1, np.nan], [0, 2], [3, np.nan], [5, 6]])
    found = parity(tmp_path, a, b, absolute=1e9)
    assert (found.nan_both, found.nan_only_a, found.nan_only_b) == (1, 1, 1)
    assert found.disagreeing_rows == 2
    assert found.max_difference == 0 and found.finite == 5
    assert [(w.row, w.index, w.a, w.b) for w in found.worst] == [
        (1, (0,), "nan", "0"),
        (2, (1,), "4", "nan"),
    ]
    assert found.argmax_agreement == 0.25  # rows with NaN have no largest


def test_infinities_agree_with_the_same_only(tmp_path):
    a = np.asarray([np.inf, np.inf, -np.inf, 1.0])
    b = np.asarray([np.inf, -np.inf, 1.0, np.inf])
    found = parity(tmp_path, a, b, relative=1.0, absolute=1e9)
    assert found.disagreeing_rows == 3
    assert found.finite == 0 and found.max_difference == 0


def test_rows_of_another_shape_disagree(tmp_path):
    a = [np.ones((2, 4)), np.ones((1, 4))]
    b = [np.ones((2, 4)), np.ones((3, 4))]
    found = parity(tmp_path, a, b)
    assert found.disagreeing_rows == found.other_shape_rows == 1
    assert (found.worst[0].a, found.worst[0].b) == ("shape (1, 4)", "shape (3, 4)")


def test_the_ten_worst_rows_are_kept_in_order(tmp_path):
    a = np.zeros(3000)
    b = np.arange(3000) * 1e-3
    assert [worst.row for worst in parity(tmp_path, a, b).worst] == list(range(2999, 2989, -1))


def test_pairs_are_drawn_from_all_rows_alike_and_by_the_seed(tmp_path):
    values = np.arange(3 << 20).astype("float64")
    found = parity(tmp_path, values, values + 1)
    assert found.samples.shape == (2000, 2)
    assert (found.samples[:, 1] - found.samples[:, 0] == 1).all()
    thirds = np.histogram(found.samples[:, 0], 3, (0, 3 << 20))[0]
    assert thirds.min() > 550
    (tmp_path / "again").mkdir()
    assert np.array_equal(parity(tmp_path / "again", values, values + 1).samples, found.samples)


def test_differences_do_not_wrap_around(tmp_path):
    assert parity(tmp_path, np.asarray([255], "u1"), np.asarray([0], "u1")).max_difference == 255
