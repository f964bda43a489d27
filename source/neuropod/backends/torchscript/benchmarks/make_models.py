"""Writes the models of torchscript_overhead.cc, each as a bare .pt file and as a package.

    python make_models.py FOLDER

FOLDER then holds, for each name in MODELS, <name>.pt for torch alone and <name>.neuropod for Neuropod.
"""

import argparse
import json
import tempfile
import warnings
from pathlib import Path

import torch
from torch import Tensor, nn

from neuropod.packagers import create_torchscript_neuropod

warnings.filterwarnings("ignore", category=DeprecationWarning)

NUM_SMALL_INPUTS = 100
IMAGE_SHAPE = (1200, 1920, 3)


class Addition(nn.Module):
    """Two float32 (16)."""

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return x + y


class Identity(nn.Module):
    """One uint8 image, returned as it is."""

    def forward(self, image: Tensor) -> Tensor:
        return image


class Invert(nn.Module):
    """One uint8 image, and another of the same size out."""

    def forward(self, image: Tensor) -> Tensor:
        return torch.bitwise_not(image)


class Perceptron(nn.Module):
    """float32 (32, 784) to float32 (32, 10)."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10))

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x)


def small_inputs() -> torch.jit.ScriptModule:
    """100 float32 (1), of which two are added: what is left is the cost of passing them."""
    module = torch.jit.ScriptModule()
    arguments = ", ".join(f"x{i}: Tensor" for i in range(NUM_SMALL_INPUTS))
    body = f"return x0 + x{NUM_SMALL_INPUTS - 1}"
    module.define(f"def forward(self, {arguments}) -> Tensor:\n    {body}\n")
    return module


Spec = tuple[str, str, tuple[int | str, ...]]

MODELS: dict[str, tuple[nn.Module, list[Spec]]] = {
    "addition": (Addition(), [("x", "float32", (16,)), ("y", "float32", (16,))]),
    "image": (Identity(), [("image", "uint8", IMAGE_SHAPE)]),
    "invert": (Invert(), [("image", "uint8", IMAGE_SHAPE)]),
    "mlp": (Perceptron(), [("x", "float32", ("batch", 784))]),
    "small_inputs": (small_inputs(), [(f"x{i}", "float32", (1,)) for i in range(NUM_SMALL_INPUTS)]),
}
OUTPUTS: dict[str, Spec] = {
    "addition": ("out", "float32", (16,)),
    "image": ("out", "uint8", IMAGE_SHAPE),
    "invert": ("out", "uint8", IMAGE_SHAPE),
    "mlp": ("out", "float32", ("batch", 10)),
    "small_inputs": ("out", "float32", (1,)),
}


def write_model(folder: Path, name: str) -> None:
    module, inputs = MODELS[name]
    model = folder / f"{name}.pt"
    torch.jit.save(torch.jit.script(module.eval()), model)
    create_torchscript_neuropod(
        neuropod_path=str(folder / f"{name}.neuropod"),
        model_name=name,
        module_path=str(model),
        input_spec=[{"name": n, "dtype": d, "shape": s} for n, d, s in inputs],
        output_spec=[{"name": n, "dtype": d, "shape": s} for n, d, s in [OUTPUTS[name]]],
        overwrite=True,
    )


def write_echo_model(folder: Path, name: str, sleep_ms: int) -> None:
    """A package that needs no framework, for what is about workers only."""
    package = folder / f"{name}.neuropod"
    (package / "0" / "data").mkdir(parents=True, exist_ok=True)
    spec = [{"name": "x", "dtype": "float32", "shape": [None]}]
    config = {
        "name": name,
        "platform": "echo",
        "input_spec": spec,
        "output_spec": [spec[0] | {"name": "y"}],
    }
    (package / "config.json").write_text(json.dumps(config), encoding="utf-8")
    model = {"sleep_ms": sleep_ms, "outputs": {"y": {"op": "scale", "input": "x", "by": 2}}}
    (package / "0" / "data" / "echo.json").write_text(json.dumps(model), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the benchmark's models.")
    parser.add_argument(
        "folder", type=Path, nargs="?", default=Path(tempfile.gettempdir()) / "models"
    )
    folder: Path = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    for name in MODELS:
        write_model(folder, name)
    write_echo_model(folder, "echo", sleep_ms=0)
    write_echo_model(folder, "slow_echo", sleep_ms=200)
    print(folder)


if __name__ == "__main__":
    main()
