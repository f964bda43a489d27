import hashlib
import json

import pytest
from echo_packager import ADDITION_INPUTS, ADDITION_OUTPUTS

from neuropod import _native
from neuropod.errors import InvalidArgumentError
from neuropod.packaging.config import build_config, config_bytes, validate_config, write_config

# The config.json that the tools which older packages come from write for this model.
PINNED_SHA256 = "0309cf2117d887218e7edb4c918097a6a427fffcbf0a948115d32414b2b6e144"


def config(**changes):
    arguments = {
        "model_name": "addition_model",
        "platform": "python",
        "input_spec": ADDITION_INPUTS,
        "output_spec": ADDITION_OUTPUTS,
    }
    return build_config(**{**arguments, **changes})


def test_bytes_are_those_that_older_tools_write():
    assert hashlib.sha256(config_bytes(config())).hexdigest() == PINNED_SHA256


def test_a_plain_package_says_nothing_that_older_readers_do_not_know():
    assert set(config()) == {
        "name",
        "platform",
        "platform_version_semver",
        "input_spec",
        "output_spec",
        "custom_ops",
        "input_tensor_device",
    }


@pytest.mark.parametrize(
    "feature",
    [
        {"stateful": True},
        {"input_spec": [{"name": "x", "dtype": "bool", "shape": ()}]},
        {"output_spec": [{"name": "y", "dtype": "complex128", "shape": ()}]},
        {"input_spec": [{"name": "x", "dtype": "int8", "shape": (), "optional": True}]},
        {"format_version": 1},
    ],
)
def test_a_new_feature_brings_the_format_version(feature):
    assert config(**feature)["format_version"] == 1


def test_words_for_people_change_no_rules():
    words = {"version": "1.2", "description": "adds", "author": "Ann", "license": "MIT"}
    written = config(**words)
    assert "format_version" not in written
    assert {key: written[key] for key in words} == words


def test_devices_of_inputs_default_to_the_gpu():
    assert config()["input_tensor_device"] == {"x": "GPU", "y": "GPU"}
    mixed = config(input_tensor_device={"y": "GPU"}, default_input_tensor_device="CPU")
    assert mixed["input_tensor_device"] == {"x": "CPU", "y": "GPU"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_name": True}, "'name'"),
        ({"model_name": ""}, "'name'.*must not be empty"),
        ({"input_tensor_device": {"z": "CPU"}}, "'z', which input_spec doesn't"),
        ({"input_tensor_device": {"x": "TPU"}}, "'CPU' or 'GPU', not 'TPU'"),
        ({"default_input_tensor_device": "cpu"}, "'CPU' or 'GPU', not 'cpu'"),
        ({"stateful": 1}, "stateful must be True or False"),
        ({"format_version": 2}, "format_version must be 1"),
        ({"format_version": True}, "format_version must be 1"),
        ({"platform_version_semver": 2}, "platform_version_semver"),
        ({"description": 3}, "description must be a string"),
        ({"licence": "MIT"}, "did you mean 'license'"),
    ],
)
def test_names_the_key_that_is_wrong(changes, message):
    with pytest.raises(InvalidArgumentError, match=message):
        config(**changes)


def test_newer_dtypes_need_the_format_version():
    wrong = config()
    wrong["input_spec"][0]["dtype"] = "complex128"
    with pytest.raises(ValueError, match="needs format_version 1"):
        validate_config(wrong)
    validate_config({**wrong, "format_version": 1})


def test_the_native_reader_reads_what_is_written(tmp_path):
    written = config(
        input_spec=[
            {"name": "größe", "dtype": "bfloat16", "shape": ("n", None, 4)},
            {"name": "hint", "dtype": "string", "shape": (), "optional": True},
        ],
        stateful=True,
        author="Åsa",
        platform_version_semver=">=2.1 <3",
        input_tensor_device={"hint": "CPU"},
    )
    write_config(tmp_path, written)
    read = _native.read_config(tmp_path)
    assert [(s.name, s.type.name, s.optional) for s in read["inputs"]] == [
        ("größe", "bfloat16", False),
        ("hint", "string", True),
    ]
    assert [d.symbol or d.value for d in read["inputs"][0].dims] == ["n", -1, 4]
    assert read["format_version"] == 1
    assert read["stateful"] is True
    assert read["author"] == "Åsa"
    assert read["platform_version_semver"] == ">=2.1 <3"
    assert read["input_tensor_device"] == {"größe": "GPU", "hint": "CPU"}
    assert json.loads((tmp_path / "config.json").read_bytes()) == written
