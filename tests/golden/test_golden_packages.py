"""Packages that earlier releases wrote load, and give the outputs that lie in them.

`make_golden.py` wrote them, one folder per release. They are never written again: where this fails, a
release has broken its users' packages.
"""

from pathlib import Path

import numpy as np
import pytest

import neuropod
from neuropod import _native, load_neuropod
from neuropod.cli.main import main
from neuropod.packaging.test_data import read_test_data

GOLDEN = Path(__file__).parent
PACKAGES = sorted(GOLDEN.glob("*/*.neuropod"))


def named(package):
    return str(package.relative_to(GOLDEN))


def test_this_release_has_golden_packages():
    release = {p.name for p in PACKAGES if p.parent.name == neuropod.__version__}
    assert release == {
        "echo_archive.neuropod",
        "echo_folder.neuropod",
        "torchscript_archive.neuropod",
        "torchscript_folder.neuropod",
    }, "`python tests/golden/make_golden.py` writes them once, when the version is raised"


@pytest.mark.parametrize("package", PACKAGES, ids=named)
def test_loads_and_gives_the_outputs_that_lie_in_it(package):
    with load_neuropod(package) as model:
        dtypes = {spec["name"]: spec["dtype"] for spec in (*model.inputs, *model.outputs)}
        data = read_test_data(package, dtypes)
        outputs = model.infer(data["test_input"])
    assert outputs.keys() == data["test_output"].keys()
    for name, expected in data["test_output"].items():
        assert outputs[name].shape == expected.shape
        np.testing.assert_array_equal(outputs[name], expected)


@pytest.mark.parametrize("package", PACKAGES, ids=named)
def test_the_command_line_tests_it(package, capsys):
    assert main(["test", str(package)]) == 0
    assert main(["info", str(package)]) == 0
    assert ("verified" in capsys.readouterr().out) == (package.parent.name != "upstream")


@pytest.mark.parametrize("package", [p for p in PACKAGES if p.parent.name != "upstream"], ids=named)
def test_what_is_known_about_it_is_kept(package):
    config = _native.read_config(str(package))
    assert config["version"] == "2024.1"
    assert config["author"] == "the tests"
    assert config["license"] == "Apache-2.0"
    assert config["created"]
    assert config["format_version"] >= 1


@pytest.mark.parametrize("package", [p for p in PACKAGES if p.parent.name == "upstream"], ids=named)
def test_packages_without_format_version_keep_the_old_rules(package):
    with load_neuropod(package) as model:
        assert model.config["format_version"] == 0
