"""Packages of the echo platform, made by hand: what the binding's tests load."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

DTYPES = (
    "float32",
    "float64",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "bool",
    "float16",
    "bfloat16",
    "complex64",
    "complex128",
    "string",
)

Spec = tuple[str, str, Sequence[int | str | None]]


def write_package(
    folder: Path,
    *,
    inputs: Sequence[Spec],
    outputs: Sequence[Spec],
    model: Mapping[str, Any],
    name: str = "echo_model",
    **config: Any,
) -> Path:
    """Writes a package. A spec is (name, dtype, shape); `model` is the content of echo.json."""
    (folder / "0" / "data").mkdir(parents=True)
    content = {
        "name": name,
        "platform": "echo",
        "format_version": 1,
        "input_spec": [spec_dict(*spec) for spec in inputs],
        "output_spec": [spec_dict(*spec) for spec in outputs],
        **config,
    }
    (folder / "config.json").write_text(json.dumps(content))
    (folder / "0" / "data" / "echo.json").write_text(json.dumps(model))
    return folder


def spec_dict(name: str, dtype: str, shape: Sequence[int | str | None]) -> dict[str, Any]:
    return {"name": name, "dtype": dtype, "shape": list(shape)}


def write_identity(
    folder: Path, dtype: str, shape: Sequence[int | str | None], **model: Any
) -> Path:
    """A package whose output `y` is its input `x`."""
    return write_package(
        folder,
        inputs=[("x", dtype, shape)],
        outputs=[("y", dtype, shape)],
        model={"outputs": {"y": {"op": "identity", "input": "x"}}, **model},
    )


def write_addition(folder: Path, dtype: str = "float32") -> Path:
    """A package whose output `out` is the sum of its inputs `x` and `y`, of shape (batch,)."""
    return write_package(
        folder,
        name="addition",
        inputs=[("x", dtype, ["batch"]), ("y", dtype, ["batch"])],
        outputs=[("out", dtype, ["batch"])],
        model={"outputs": {"out": {"op": "sum", "inputs": ["x", "y"]}}},
    )
