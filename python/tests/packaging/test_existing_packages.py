"""Packages as older tools wrote them load, and so does their test data."""

import io
import json
import pickle
import zipfile

import numpy as np
import pytest
import torch

from neuropod import load_neuropod
from neuropod.packaging.test_data import read_test_data

X = np.arange(3, dtype="float32")


def spec(name):
    return {"name": name, "dtype": "float32", "shape": ["batch_size"]}


# The keys that the oldest packages have: no versions, no devices, no custom operators.
CONFIG = {
    "name": "addition_model",
    "input_spec": [spec("x"), spec("y")],
    "output_spec": [spec("out")],
}


class Addition(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"out": x + y}


def torchscript_file():
    buffer = io.BytesIO()
    torch.jit.save(torch.jit.script(Addition()), buffer)
    return buffer.getvalue()


MODELS = {
    "echo": (
        "0/data/echo.json",
        lambda: json.dumps({"outputs": {"out": {"op": "sum", "inputs": ["x", "y"]}}}).encode(),
    ),
    "torchscript": ("0/data/model.pt", torchscript_file),
}


def write_old_package(path, platform, as_zip):
    """As the older packagers laid it out; a zip with local times and permission bits."""
    name, model = MODELS[platform]
    test_data = {"test_input": {"x": X, "y": X}, "test_output": {"out": 2 * X}}
    files = {
        name: model(),
        "config.json": json.dumps({**CONFIG, "platform": platform}, indent=4).encode(),
        "test_data.pkl": pickle.dumps(test_data, protocol=3),
    }
    if as_zip:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for file, content in files.items():
                archive.writestr(zipfile.ZipInfo(file, (2019, 3, 4, 5, 6, 8)), content)
        return path
    (path / "0" / "data").mkdir(parents=True)
    (path / "0" / "ops").mkdir()
    for file, content in files.items():
        (path / file).write_bytes(content)
    return path


@pytest.mark.parametrize("as_zip", [True, False])
@pytest.mark.parametrize("platform", MODELS)
def test_loads_and_runs(tmp_path, platform, as_zip):
    package = write_old_package(tmp_path / "old", platform, as_zip)
    with load_neuropod(package) as model:
        assert model.config["format_version"] == 0
        np.testing.assert_array_equal(model.infer({"x": X, "y": X})["out"], 2 * X)


def test_a_missing_input_reaches_the_model(tmp_path):
    package = write_old_package(tmp_path / "old", "echo", as_zip=True)
    with load_neuropod(package) as model:
        np.testing.assert_array_equal(model.infer({"x": X})["out"], X)


@pytest.mark.parametrize("as_zip", [True, False])
def test_its_test_data_is_read(tmp_path, as_zip):
    package = write_old_package(tmp_path / "old", "echo", as_zip)
    data = read_test_data(package, {"x": "float32", "y": "float32", "out": "float32"})
    np.testing.assert_array_equal(data["test_input"]["y"], X)
    np.testing.assert_array_equal(data["test_output"]["out"], 2 * X)


def test_loading_never_touches_the_test_data(tmp_path):
    package = write_old_package(tmp_path / "old", "echo", as_zip=False)
    (package / "test_data.pkl").write_bytes(b"cos\nsystem\n(S'touch was_here'\ntR.")
    with load_neuropod(package) as model:
        np.testing.assert_array_equal(model.infer({"x": X, "y": X})["out"], 2 * X)
    assert not (tmp_path / "was_here").exists()
