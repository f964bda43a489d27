"""Writes the golden packages of this release: `tests/golden/<version>/`.

Run once when a release is made, and committed; never again for the same version: each later release
must load what this one wrote. `python tests/golden/make_golden.py` refuses to touch what is there.

`tests/golden/upstream/` was written by `--upstream`: by hand, in the layout that the packagers before
format_version had.
"""

import argparse
import io
import json
import pickle
import sys
import tempfile
import zipfile
from pathlib import Path

import numpy as np
import torch

import neuropod
from neuropod.packagers import create_torchscript_neuropod

GOLDEN = Path(__file__).parent
sys.path.append(str(GOLDEN.parents[1] / "python" / "tests" / "packaging"))

from echo_packager import create_echo_neuropod  # noqa: E402

X = np.arange(4, dtype="float32")
ABOUT = {
    "version": "2024.1",
    "description": "a golden package: every later release gives the same outputs",
    "author": "the tests",
    "license": "Apache-2.0",
    "created": "2026-11-30T00:00:00Z",
    "platform_version_semver": "*",
}


class Addition(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("offset", torch.tensor(0.5))

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"out": x + y + self.offset}


def spec(name: str, dtype: str, *shape: object) -> dict[str, object]:
    return {"name": name, "dtype": dtype, "shape": shape}


def write_release(folder: Path) -> None:
    """One model of each platform, as archive and as folder."""
    folder.mkdir()
    for kind, as_zip in (("archive", True), ("folder", False)):
        names = np.array([["", "ä"], ["b", "long " * 10]])
        inputs = {"x": X, "y": 2 * X, "name": names, "flag": np.array(True)}
        create_echo_neuropod(
            neuropod_path=folder / f"echo_{kind}.neuropod",
            model_name="echo",
            input_spec=[
                spec("x", "float32", "batch"),
                spec("y", "float32", "batch"),
                spec("name", "string", None, 2),
                {**spec("flag", "bool"), "optional": True},
            ],
            output_spec=[
                spec("out", "float32", "batch"),
                spec("same_name", "string", None, 2),
                spec("same_flag", "bool"),
            ],
            outputs={
                "out": {"op": "sum", "inputs": ["x", "y"]},
                "same_name": {"op": "identity", "input": "name"},
                "same_flag": {"op": "identity", "input": "flag"},
            },
            test_input_data=inputs,
            test_expected_out={
                "out": 3 * X,
                "same_name": names,
                "same_flag": np.array(True),
            },
            package_as_zip=as_zip,
            **ABOUT,
        )
        create_torchscript_neuropod(
            neuropod_path=folder / f"torchscript_{kind}.neuropod",
            model_name="addition",
            module=torch.jit.script(Addition()),
            input_spec=[spec("x", "float32", "batch"), spec("y", "float32", "batch")],
            output_spec=[spec("out", "float32", "batch")],
            test_input_data={"x": X, "y": 2 * X},
            test_expected_out={"out": 3 * X + 0.5},
            package_as_zip=as_zip,
            **ABOUT,
        )


def write_upstream(folder: Path) -> None:
    """The layout of packages without format_version: keys, pickled test data, local times in the zip."""
    folder.mkdir()
    scripted = io.BytesIO()
    torch.jit.save(torch.jit.script(Addition()), scripted)
    specs = [
        {"name": name, "dtype": "float32", "shape": ["batch_size"]} for name in ("x", "y", "out")
    ]
    config = {
        "name": "addition",
        "platform": "torchscript",
        "platform_version_semver": "*",
        "custom_ops": [],
        "input_spec": specs[:2],
        "output_spec": specs[2:],
        "input_tensor_device": {"x": "GPU", "y": "GPU"},
        "custom": {"team": "of somebody's own"},
    }
    data = {"test_input": {"x": X, "y": 2 * X}, "test_output": {"out": 3 * X + 0.5}}
    files = {
        "config.json": json.dumps(config, indent=4, sort_keys=True).encode(),
        "test_data.pkl": _pickle_as_numpy_1_did(data),
        "0/data/model.pt": scripted.getvalue(),
    }
    with zipfile.ZipFile(folder / "archive.neuropod", "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(files):
            entry = zipfile.ZipInfo(name, (2000, 1, 1, 0, 0, 0))
            entry.external_attr = 0o100644 << 16
            archive.writestr(entry, files[name], zipfile.ZIP_DEFLATED)
    for name, content in files.items():
        path = folder / "folder.neuropod" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def _pickle_as_numpy_1_did(data: object) -> bytes:
    """numpy 2 moved the module whose function an array's pickle names."""
    return pickle.dumps(data, protocol=3).replace(b"cnumpy._core.", b"cnumpy.core.")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--upstream", action="store_true", help="write upstream/ instead")
    upstream = parser.parse_args().upstream
    folder = GOLDEN / ("upstream" if upstream else neuropod.__version__)
    if folder.exists():
        print(f"{folder} is there already: golden packages are written once", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory(dir=GOLDEN, prefix=".writing-") as staging:
        written = Path(staging) / "packages"
        (write_upstream if upstream else write_release)(written)
        written.rename(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
