import numpy as np
import pytest

from neuropod.errors import ModelError
from neuropod.packaging.comparison import check_outputs


def differs(actual, expected, message):
    with pytest.raises(ValueError, match=message) as caught:
        check_outputs({"out": actual}, {"out": expected})
    assert isinstance(caught.value, ModelError)


def test_close_numbers_equal_strings_and_nan_pass():
    out = {
        "a": np.array([1.0, np.nan, np.inf], "float32"),
        "s": np.array(["a", "ß"]),
        "b": np.array([True]),
        "c": np.array([1 + 2j]),
        "u": np.array([2**64 - 1], "uint64"),
        "e": np.zeros((0, 3)),
        "unasked": np.ones(3),
    }
    expected = {name: value.copy() for name, value in out.items() if name != "unasked"}
    expected["a"][0] += 1e-6
    expected["s"] = np.array(["a", "ß"], dtype=object)
    check_outputs(out, expected)


def test_names_the_worst_element():
    actual = np.zeros((2, 3), "float32")
    expected = actual.copy()
    expected[0, 1], expected[1, 2] = 0.5, 7
    differs(
        actual, expected, r"output 'out' .* 2 of 6 elements; worst at \[1, 2\]: expected 7.0, got 0"
    )


def test_a_nan_on_one_side_is_the_worst():
    differs(np.array([5.0, np.nan]), np.array([0.0, 1.0]), r"worst at \[1\]: expected 1.0, got nan")


def test_large_integers_do_not_wrap_around():
    differs(np.array([0], "uint64"), np.array([2**63], "uint64"), "1 of 1 elements")


@pytest.mark.parametrize(
    ("actual", "expected", "message"),
    [
        (np.zeros((2, 1)), np.zeros((2, 2)), r"expected shape \(2, 2\), got \(2, 1\)"),
        (np.zeros(()), np.zeros((1,)), r"expected shape \(1,\), got \(\)"),
        (np.zeros(1), np.array(["0"]), "expected strings, got float64"),
        (np.array(["a", "b"]), np.array(["a", "c"]), r"first at \[1\]: expected 'c', got 'b'"),
        (np.array(["a" * 500]), np.array(["b" * 500]), "…"),
    ],
)
def test_says_what_differs(actual, expected, message):
    differs(actual, expected, message)


def test_a_missing_output_is_named_with_the_nearest():
    with pytest.raises(ValueError, match=r"no output 'boxs'.*did you mean 'boxes'"):
        check_outputs({"boxes": np.zeros(1)}, {"boxs": np.zeros(1)})
