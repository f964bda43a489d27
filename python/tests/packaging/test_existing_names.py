"""What existing code imports from `neuropod.utils` and `neuropod.backends`."""

import hashlib

import numpy as np
import pytest
from echo_packager import ADDITION, ADDITION_INPUTS, ADDITION_OUTPUTS, create_echo_neuropod

from neuropod.utils import (
    config_utils,
    dtype_utils,
    env_utils,
    eval_utils,
    hash_utils,
    packaging_utils,
)

X = np.arange(3, dtype="float32")


@pytest.fixture
def addition(tmp_path):
    create_echo_neuropod(neuropod_path=tmp_path / "addition", package_as_zip=False, **ADDITION)
    return tmp_path / "addition"


def test_packager_modules_have_their_old_paths():
    from neuropod.backends.torchscript.packager import create_torchscript_neuropod
    from neuropod.packagers import create_torchscript_neuropod as by_name

    assert create_torchscript_neuropod is by_name


def test_writes_and_reads_a_configuration(tmp_path):
    config_utils.write_neuropod_config(
        neuropod_path=str(tmp_path),
        model_name="m",
        platform="python",
        input_spec=ADDITION_INPUTS,
        output_spec=ADDITION_OUTPUTS,
        custom_ops=["/somewhere/op.so"],
        default_input_tensor_device="CPU",
    )
    config = config_utils.read_neuropod_config(str(tmp_path))
    assert config["custom_ops"] == ["op.so"]
    assert config["input_tensor_device"] == {"x": "CPU", "y": "CPU"}


def test_canonicalizes_dtypes_and_leaves_shapes_alone():
    spec = [{"name": "y", "dtype": "double", "shape": (None, 2)}]
    assert config_utils.canonicalize_tensor_spec(spec) == [
        {"name": "y", "dtype": "float64", "shape": (None, 2)}
    ]


def valid_config():
    spec = {"name": "x", "dtype": "float32", "shape": (None, 2, "some_symbol")}
    return {
        "name": "addition_model",
        "platform": "tensorflow",
        "input_spec": [dict(spec)],
        "output_spec": [{**spec, "name": "y"}],
        "input_tensor_device": {"x": "GPU"},
    }


def test_validates_a_configuration():
    config_utils.validate_neuropod_config(valid_config())
    config_utils.validate_tensor_spec(valid_config()["input_spec"])


@pytest.mark.parametrize(
    "break_it",
    [
        lambda c: c.update(name=True),
        lambda c: c.update(platform=5),
        lambda c: c["input_tensor_device"].update(x="TPU"),
        lambda c: c["input_tensor_device"].update(y="CPU"),
        lambda c: c["input_tensor_device"].clear(),
        lambda c: c["input_spec"][0].update(dtype="complex128"),
        lambda c: c["input_spec"][0].update(name=5),
        lambda c: c["input_spec"][0].update(shape="123"),
        lambda c: c["input_spec"][0].update(shape=None),
        lambda c: c["input_spec"][0].update(shape=(None, 2, "some_symbol", True)),
        lambda c: c["input_spec"][0].pop("shape"),
    ],
)
def test_a_wrong_configuration_is_a_value_error(break_it):
    config = valid_config()
    break_it(config)
    with pytest.raises(ValueError, match=r"."):
        config_utils.validate_neuropod_config(config)


def test_dtypes_by_name():
    assert dtype_utils.get_dtype("string") == np.dtype(str)
    assert dtype_utils.get_dtype("double") == np.float64
    assert dtype_utils.get_dtype_name(np.int32) == "int32"
    assert "float32" in config_utils.ALLOWED_DTYPES


def test_sha256_of_a_file(tmp_path):
    (tmp_path / "f").write_bytes(b"content")
    assert hash_utils.sha256sum(str(tmp_path / "f")) == hashlib.sha256(b"content").hexdigest()


def test_test_data_of_any_plain_kind(tmp_path):
    eval_utils.save_test_data(str(tmp_path), {"x": 3, "y": 4}, {"out": 7})
    data = eval_utils.load_test_data(str(tmp_path))
    assert data == {"test_input": {"x": 3, "y": 4}, "test_output": {"out": 7}}
    assert eval_utils.TEST_DATA_FILENAME == "test_data.pkl"


def test_no_test_data_is_none(addition):
    assert eval_utils.load_test_data(addition) is None


def test_compares_outputs():
    eval_utils.check_output_matches_expected({"out": X}, {"out": X.copy()})
    with pytest.raises(ValueError, match="'out'"):
        eval_utils.check_output_matches_expected({"out": X}, {"out": X + 1})


def test_loads_and_tests_a_package(addition):
    eval_utils.load_and_test_neuropod(str(addition), {"x": X, "y": X}, {"out": 2 * X})
    eval_utils.load_and_test_neuropod(str(addition), {"x": X, "y": X})
    with pytest.raises(ValueError, match="'out'"):
        eval_utils.load_and_test_neuropod(str(addition), {"x": X, "y": X}, {"out": X + 9})


def test_evaluates_in_a_new_process(addition):
    out = env_utils.eval_in_new_process(
        str(addition),
        {"x": X, "y": X},
        extra_args=["-X", "utf8"],
        neuropod_load_args={"threads": 1},
    )
    np.testing.assert_array_equal(out["out"], 2 * X)


def test_decorators_of_packagers():
    @packaging_utils.expand_default_kwargs([create_echo_neuropod])
    @packaging_utils.set_packager_docstring
    def create_double_neuropod(**kwargs):
        create_echo_neuropod(**kwargs)

    assert create_double_neuropod.neuropod_default_args["package_as_zip"] is True
    assert packaging_utils.packager(platform="echo") is not None
