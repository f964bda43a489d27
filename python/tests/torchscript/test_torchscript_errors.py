"""Failures name what failed, hold torch's own words and leave the model usable."""

import io
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torchscript_packages import Load, LoadModule, WritePackage

from neuropod import (
    CorruptPackageError,
    InvalidPackageError,
    LoadFailedError,
    ModelError,
    OutOfMemoryError,
    SpecMismatchError,
)

X = [("x", "float32", ("n",))]
Y = [("y", "float32", ("n",))]


class Raises(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        if bool(x[0] < 0):
            raise ValueError("negative: " + str(int(x[0])))
        return x


class BadShapes(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.mm(x.view(1, -1), torch.ones(2, 2)).view(-1)


class TooLarge(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.zeros(int(x[0]), 1 << 40)[0]


class NoForward(nn.Module):
    @torch.jit.export
    def predict(self, x: Tensor) -> Tensor:
        return x


class Differentiates(nn.Module):
    """As force fields do."""

    def forward(self, x: Tensor) -> Tensor:
        leaf = x.detach().requires_grad_(True)
        energy = (leaf * leaf).sum()
        gradient = torch.autograd.grad([energy], [leaf])[0]
        assert gradient is not None
        return gradient


class GradientsOff(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1))

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        y = x * self.weight
        return {"y": y, "recorded": torch.tensor(y.requires_grad)}


def test_a_model_that_raises_shows_its_traceback_and_works_the_next_time(
    load_module: LoadModule,
) -> None:
    model = load_module(Raises(), X, Y)
    with pytest.raises(ModelError) as error:
        model.infer({"x": np.float32([-2])})
    text = str(error.value)
    assert "model 'model_0'" in text
    assert "negative: -2" in text
    assert "raise ValueError" in text, "the line of the model's own source"
    assert "C++ stack" not in text and "frame #" not in text
    assert model.infer({"x": np.float32([2])})["y"].tolist() == [2]


def test_an_operator_that_fails_shows_its_message(load_module: LoadModule) -> None:
    model = load_module(BadShapes(), X, Y)
    with pytest.raises(ModelError, match=r"(?s)shapes cannot be multiplied \(1x3 and 2x2\)"):
        model.infer({"x": np.float32([1, 2, 3])})
    assert model.infer({"x": np.float32([1, 2])})["y"].tolist() == [3, 3]


def test_exhausted_memory_is_recognised(load_module: LoadModule) -> None:
    model = load_module(TooLarge(), X, [("y", "float32", (None,))])
    with pytest.raises(OutOfMemoryError, match="allocate memory"):
        model.infer({"x": np.float32([1 << 10])})


def test_inputs_and_outputs_of_the_wrong_shape(load_module: LoadModule) -> None:
    model = load_module(Raises(), X, [("y", "float32", (3,))])
    with pytest.raises(SpecMismatchError, match="'x'"):
        model.infer({"x": np.float32([[1]])})
    with pytest.raises(SpecMismatchError, match="'y'"):
        model.infer({"x": np.float32([1, 2])})
    assert model.infer({"x": np.float32([1, 2, 3])})["y"].tolist() == [1, 2, 3]


def test_a_package_without_a_model(load: Load, write_package: WritePackage) -> None:
    package = write_package(Raises(), X, Y)
    (package / "0/data/model.pt").unlink()
    with pytest.raises(InvalidPackageError, match=r"holds no 0/data/model\.pt"):
        load(package)


@pytest.mark.parametrize("content", [b"", b"no archive" * 100])
def test_a_model_file_that_is_no_torchscript(
    load: Load, write_package: WritePackage, content: bytes
) -> None:
    package = write_package(content, X, Y)
    with pytest.raises(LoadFailedError, match=r"[Rr]eader failed.*torch\.jit\.save"):
        load(package)


def test_a_truncated_model_file(load: Load, write_package: WritePackage) -> None:
    package = write_package(Raises(), X, Y)
    model = package / "0/data/model.pt"
    model.write_bytes(model.read_bytes()[:-200])
    with pytest.raises(LoadFailedError, match="PytorchStreamReader"):
        load(package)


def test_weights_without_a_model(load: Load, write_package: WritePackage) -> None:
    buffer = io.BytesIO()
    torch.save({"weight": torch.ones(2)}, buffer)
    package = write_package(buffer.getvalue(), X, Y)
    with pytest.raises(LoadFailedError, match="torch can't load"):
        load(package)


def test_an_archive_from_before_torch_1_2(load: Load, write_package: WritePackage) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("model/version", "1\n")
        archive.writestr("model/model.json", "{}")
    package = write_package(buffer.getvalue(), X, Y)
    with pytest.raises(LoadFailedError, match=r"torch before 1\.2.*export the model again"):
        load(package)


def test_a_module_without_forward(load: Load, write_package: WritePackage) -> None:
    package = write_package(NoForward(), X, Y)
    with pytest.raises(LoadFailedError, match="no method 'forward'"):
        load(package)


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_models_load_straight_from_a_zip(
    load: Load, write_package: WritePackage, tmp_path: Path, method: int
) -> None:
    package = write_package(Raises(), X, Y)
    archive = tmp_path / "package.zip"
    with zipfile.ZipFile(archive, "w", method) as target:
        for name in ("config.json", "0/data/model.pt"):
            target.write(package / name, name)
    with load(archive) as model:
        assert model.infer({"x": np.float32([2])})["y"].tolist() == [2]


def test_a_damaged_zip_is_corrupt_whatever_torch_makes_of_it(
    load: Load, write_package: WritePackage, tmp_path: Path
) -> None:
    package = write_package(Raises(), X, Y)
    archive = tmp_path / "package.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as target:
        for name in ("config.json", "0/data/model.pt"):
            target.write(package / name, name)
        info = target.getinfo("0/data/model.pt")
    content = bytearray(archive.read_bytes())
    start = info.header_offset + 30 + len(info.filename)
    content[start + 40 : start + 80] = bytes(40)
    archive.write_bytes(content)
    with pytest.raises(CorruptPackageError, match=r"model\.pt"):
        load(archive)


def test_a_model_may_differentiate_inside(load_module: LoadModule) -> None:
    model = load_module(Differentiates(), X, Y)
    assert model.infer({"x": np.float32([1, 3])})["y"].tolist() == [2, 6]


def test_gradients_are_not_recorded(load_module: LoadModule) -> None:
    model = load_module(GradientsOff(), X, [*Y, ("recorded", "bool", ())])
    assert not model.infer({"x": np.float32([1])})["recorded"]


def test_a_failed_load_leaves_nothing_that_disturbs_the_next(
    load: Load, write_package: WritePackage
) -> None:
    package = write_package(b"rubbish", X, Y)
    for _ in range(3):
        with pytest.raises(LoadFailedError):
            load(package)
    config = json.loads((package / "config.json").read_text())
    whole = write_package(Raises(), X, Y, folder="whole", name=config["name"])
    with load(whole) as model:
        assert model.infer({"x": np.float32([1])})["y"].tolist() == [1]
