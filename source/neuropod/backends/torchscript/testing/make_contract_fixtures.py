"""Writes the TorchScript packages of the contract suite, and the JSON file that names them.

    python make_contract_fixtures.py FOLDER

The packages are written by hand, not by the packager, so that the suite tests the plug-in alone. The
format of `fixtures.json` is described in source/neuropod/testing/contract_suite/README.md.
"""

import argparse
import json
import warnings
import zipfile
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

warnings.filterwarnings("ignore", category=DeprecationWarning)

Spec = dict[str, object]

FAILING_MESSAGE = "the first element is negative"


class Identity(nn.Module):
    def forward(self, x: Tensor) -> dict[str, Tensor]:
        return {"y": x}


class IdentityString(nn.Module):
    def forward(self, x: list[str]) -> list[str]:
        return x


class Addition(nn.Module):
    def forward(self, x: Tensor, y: Tensor) -> dict[str, Tensor]:
        return {"out": x + y}


class Strings(nn.Module):
    def forward(self, x: list[str], y: list[str]) -> dict[str, list[str]]:
        return {"out": [a + " " + b for a, b in zip(x, y)]}  # noqa: B905


class Failing(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        if bool(x[0] < 0):
            raise ValueError("the first element is negative")
        return x


class Optional(nn.Module):
    def forward(self, x: Tensor, bias: Tensor | None = None) -> Tensor:
        if bias is not None:
            return x + bias
        return x


class Stateful(nn.Module):
    total: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(1))

    def forward(self, x: Tensor) -> Tensor:
        self.total = self.total + x
        return self.total


class Transpose(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.t()


class Alias(nn.Module):
    def forward(self, x: Tensor) -> dict[str, Tensor]:
        return {"y": x, "z": x}


class InPlace(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.add_(1)


class Outputs(nn.Module):
    def forward(self, x: Tensor) -> tuple[dict[str, Tensor], dict[str, list[str]]]:
        return {"double": x * 2, "negative": -x}, {"text": ["done"]}


class Parameter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.values = nn.Parameter(torch.tensor([1.0, 2.0, 3.0]))

    def forward(self, x: Tensor) -> Tensor:
        return self.values


def tensor(
    name: str, shape: Sequence[str | int] = ("n",), dtype: str = "float32", **extra: bool
) -> Spec:
    return {"name": name, "dtype": dtype, "shape": list(shape), **extra}


def write_package(
    folder: Path, module: nn.Module, inputs: list[Spec], outputs: list[Spec], **config: object
) -> None:
    data = folder / "0" / "data"
    data.mkdir(parents=True, exist_ok=True)
    torch.jit.script(module.eval()).save(data / "model.pt")
    config |= {
        "name": folder.name,
        "platform": "torchscript",
        "input_spec": inputs,
        "output_spec": outputs,
        "format_version": 1,
    }
    (folder / "config.json").write_text(json.dumps(config, indent=4, sort_keys=True))


def zip_package(folder: Path, target: Path) -> None:
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(folder.rglob("*")):
            if file.is_file():
                archive.write(file, file.relative_to(folder).as_posix())


def write_packages(root: Path) -> dict[str, str]:
    """Writes every package of the suite; returns name → path relative to `root`."""
    x, y = tensor("x"), tensor("y")
    text = [tensor("x", dtype="string"), tensor("y", dtype="string")]
    write_package(root / "identity", Identity(), [x], [y])
    zip_package(root / "identity", root / "identity.zip")
    write_package(root / "identity_string", IdentityString(), text[:1], text[1:])
    write_package(root / "addition", Addition(), [x, y], [tensor("out")])
    write_package(root / "strings", Strings(), text, [tensor("out", dtype="string")])
    write_package(root / "failing", Failing(), [x], [y])
    write_package(root / "optional", Optional(), [x, tensor("bias", optional=True)], [y])
    write_package(root / "stateful", Stateful(), [x], [y], stateful=True)
    rows_columns = tensor("x", ["rows", "columns"])
    write_package(
        root / "transpose", Transpose(), [rows_columns], [tensor("y", ["columns", "rows"])]
    )
    write_package(root / "alias", Alias(), [x], [y, tensor("z")])
    write_package(root / "inplace", InPlace(), [x], [y])
    outputs = [tensor("double"), tensor("negative"), tensor("text", [1], "string")]
    write_package(root / "outputs", Outputs(), [x], outputs)
    write_package(root / "parameter", Parameter(), [x], [tensor("y", [3])])
    names = [path.parent.name for path in root.glob("*/config.json")]
    return {name: name for name in sorted(names)} | {"identity_zip": "identity.zip"}


CAPABILITIES: dict[str, object] = {
    "dtypes": [
        *("float32", "float64", "string", "int8", "int16", "int32", "int64"),
        *("uint8", "uint16", "uint32", "uint64"),
        *("bool", "float16", "bfloat16", "complex64", "complex128"),
    ],
    "max_rank": 6,
    "string_ranks": [1],
    "zero_size": True,
    "string_nul": True,
    "zero_copy_in": True,
    "zero_copy_out": True,
    "device": torch.cuda.is_available(),
    "outputs_on_device": False,
    "corrupt_model_detected": True,
}

REASONS = {
    "string_ranks": "TorchScript has lists of strings (rank 1) and single ones (`str`, rank 0)",
    "device": "no GPU that this torch can use",
    "outputs_on_device": "outputs are brought to the CPU, where callers read them",
}


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the contract suite's TorchScript packages.")
    parser.add_argument("folder", type=Path)
    root: Path = parser.parse_args().folder
    fixtures = {
        "platform": "torchscript",
        "model_file": "0/data/model.pt",
        "failing_message": FAILING_MESSAGE,
        "packages": write_packages(root),
        "capabilities": CAPABILITIES,
        "reasons": REASONS,
    }
    (root / "fixtures.json").write_text(json.dumps(fixtures, indent=2))


if __name__ == "__main__":
    main()
