"""`neuropod test`."""

import json
import pickle
import shutil

import ml_dtypes
import numpy as np
import pytest
from echo_packager import ADDITION, create_echo_neuropod
from test_cli import failed
from test_test_data import Hostile

from neuropod.cli.main import main
from neuropod.packaging.test_data import write_pickled, write_test_data

X = np.arange(4, dtype="float32")
INPUTS = {"x": X, "y": X}


@pytest.fixture
def package(tmp_path):
    """out = x + y as a folder without test data."""
    create_echo_neuropod(neuropod_path=tmp_path / "a", package_as_zip=False, **ADDITION)
    (tmp_path / "a" / "manifest.json").unlink()
    return tmp_path / "a"


def verdict(capsys, *arguments):
    """Exit code and JSON of the command."""
    code = main(["test", *map(str, arguments), "--json"])
    return code, json.loads(capsys.readouterr().out)


def test_outputs_that_are_right_pass(capsys, package):
    write_test_data(package, INPUTS, {"out": 2 * X})
    code, result = verdict(capsys, package)
    assert code == 0
    assert result["passed"] and result["compared"]
    assert main(["test", str(package)]) == 0
    shown = capsys.readouterr().out
    assert "0 of 4" in shown
    assert "passed in" in shown


def test_test_data_inside_a_zip_is_found(capsys, tmp_path):
    create_echo_neuropod(
        neuropod_path=tmp_path / "a.neuropod",
        test_input_data=INPUTS,
        test_expected_out={"out": 2 * X},
        **ADDITION,
    )
    assert verdict(capsys, tmp_path / "a.neuropod")[0] == 0


def test_the_worst_element_is_shown(capsys, package):
    write_test_data(package, INPUTS, {"out": np.array([0, 2, 3, 6.5], "float32")})
    code, result = verdict(capsys, package)
    assert code == 1
    assert not result["passed"]
    (output,) = result["outputs"]
    assert output["differing"] == 2
    assert output["worst"] == {
        "index": [2],
        "expected": 3,
        "got": 4,
        "absolute": 1,
        "relative": pytest.approx(1 / 3),
    }
    assert main(["test", str(package)]) == 1
    captured = capsys.readouterr()
    assert captured.err == ""
    assert "2 of 4" in captured.out
    assert "FAILED" in captured.out
    assert "worst at [2]: expected 3.0, got 4.0" in captured.out


def test_tolerances_decide(capsys, package):
    write_test_data(package, INPUTS, {"out": 2 * X + np.float32(0.01)})
    assert verdict(capsys, package)[0] == 1
    assert verdict(capsys, package, "--atol", "0.02")[0] == 0
    assert verdict(capsys, package, "--rtol", "0.5", "--atol", "0")[0] == 1
    assert verdict(capsys, package, "--rtol", "1", "--atol", "0")[0] == 0


def test_nan_equals_nan_only(capsys, package):
    nan = np.array([np.nan, 1, np.inf, -np.inf], "float32")
    write_test_data(package, {"x": nan, "y": np.zeros(4, "float32")}, {"out": nan})
    code, result = verdict(capsys, package)
    assert code == 0
    assert result["outputs"][0]["worst"]["absolute"] == 0
    shutil.rmtree(package / "test_data")
    write_test_data(package, {"x": nan, "y": np.zeros(4, "float32")}, {"out": np.ones(4)})
    code, result = verdict(capsys, package)
    assert code == 1
    assert result["outputs"][0]["differing"] == 3
    assert result["outputs"][0]["worst"]["got"] in ("NaN", "Infinity")


def identity(folder, dtype, value, expected):
    spec = {"dtype": dtype, "shape": (None,)}
    create_echo_neuropod(
        neuropod_path=folder / "i",
        model_name="i",
        input_spec=[{"name": "x", **spec}],
        output_spec=[{"name": "y", **spec}],
        outputs={"y": {"op": "identity", "input": "x"}},
        package_as_zip=False,
    )
    (folder / "i" / "manifest.json").unlink()
    write_test_data(folder / "i", {"x": value}, {"y": expected})
    return folder / "i"


@pytest.mark.parametrize(
    ("dtype", "value", "expected", "got"),
    [
        ("string", ["a", "größe"], ["a", "grösse"], "größe"),
        ("int64", [1, 2**62], [1, 2**62 + 2**50], 2**62),
        ("uint64", [1, 2**64 - 1], [1, 0], 2**64 - 1),
        ("bool", [True, False], [True, True], False),
        ("complex64", [1, 2 + 1j], [1, 2], [2, 1]),
        ("bfloat16", [1, 2], [1, 4], 2),
        ("float16", [1, np.inf], [1, 4], "Infinity"),
    ],
)
def test_every_kind_of_element_is_compared(capsys, tmp_path, dtype, value, expected, got):
    numpy_type = {"string": "U", "bfloat16": ml_dtypes.bfloat16}.get(dtype, dtype)
    arrays = (np.array(value, numpy_type), np.array(expected, numpy_type))
    code, result = verdict(capsys, identity(tmp_path, dtype, *arrays), "--rtol", "1e-9")
    assert code == 1
    assert result["outputs"][0]["worst"]["index"] == [1]
    assert result["outputs"][0]["worst"]["got"] == got


def test_inputs_without_expectation_are_run_and_not_compared(capsys, package):
    write_test_data(package, INPUTS, None)
    code, result = verdict(capsys, package)
    assert code == 0
    assert not result["compared"]
    assert main(["test", str(package)]) == 0
    assert "nothing was compared" in capsys.readouterr().out


def test_a_package_without_test_data_is_2(capsys, package):
    code, message = failed(capsys, "test", package)
    assert code == 2
    assert "has no test data" in message


def test_an_expectation_of_another_shape_or_name_is_a_difference(capsys, package):
    write_test_data(package, INPUTS, {"out": np.zeros((2, 2)), "ouu": X})
    code, result = verdict(capsys, package)
    assert code == 1
    assert "expected shape (2, 2), got (4,)" in result["outputs"][0]["problem"]
    assert "did you mean 'out'" in result["outputs"][1]["problem"]


def test_inputs_that_do_not_fit_are_the_packages_fault(capsys, package):
    write_test_data(package, {"x": X, "y": X[:2]}, None)
    code, message = failed(capsys, "test", package)
    assert code == 1
    assert "own test data" in message


@pytest.mark.parametrize("option", ["--rtol=-1", "--atol=nan", "--atol=inf", "--rtol=x"])
def test_a_tolerance_is_a_number_from_zero(capsys, package, option):
    code, message = failed(capsys, "test", package, option)
    assert code == 2
    assert option[:6] in message


# Test data as older tools write it.


def test_pickled_test_data_is_read(capsys, package):
    write_pickled(package, INPUTS, {"out": 2 * X})
    code, result = verdict(capsys, package)
    assert code == 0
    assert result["compared"]


@pytest.mark.parametrize("module", [b"numpy.core.multiarray", b"numpy._core.multiarray"])
def test_pickles_of_both_major_versions_of_numpy_are_read(capsys, package, module):
    data = pickle.dumps({"test_input": INPUTS, "test_output": {"out": 2 * X}}, 2)
    data = data.replace(b"numpy._core.multiarray", module)
    assert module in data
    (package / "test_data.pkl").write_bytes(data)
    assert verdict(capsys, package)[0] == 0


def test_a_pickle_that_would_run_a_program_is_refused(capsys, package, tmp_path):
    data = pickle.dumps({"test_input": INPUTS, "test_output": Hostile()})
    (package / "test_data.pkl").write_bytes(data)
    code, message = failed(capsys, "test", package)
    assert code == 3
    assert "only plain containers, numbers, strings and numpy arrays are read" in message


@pytest.mark.parametrize(
    "content",
    [[1, 2], {"test_output": {}}, {"test_input": [1]}, {"test_input": {}, "test_output": 1}],
)
def test_a_pickle_of_another_form_is_refused(capsys, package, content):
    (package / "test_data.pkl").write_bytes(pickle.dumps(content))
    code, message = failed(capsys, "test", package)
    assert code == 3
    assert "test_data.pkl holds no" in message


@pytest.mark.parametrize("content", [b"", b"garbage", b"\x93NUMPY"])
def test_arrays_that_are_damaged_are_named(capsys, package, content):
    """And nobody is advised to unpickle them."""
    (package / "test_data").mkdir()
    (package / "test_data" / "test_input.npz").write_bytes(content)
    code, message = failed(capsys, "test", package)
    assert code == 3
    assert f"test_data/test_input.npz of {package} can't be read: it is no .npz" in message
    assert "pickle" not in message


@pytest.mark.parametrize(
    "arrays", [{"x:ends": np.arange(3)}, {"x": np.zeros(2, "V2"), "z": np.zeros(2, "V2")}]
)
def test_arrays_that_do_not_fit_together_are_refused(capsys, package, arrays):
    (package / "test_data").mkdir()
    np.savez(package / "test_data" / "test_input.npz", **arrays)
    code, message = failed(capsys, "test", package)
    assert code == 3
    assert "can't be read" in message or "don't fit together" in message
