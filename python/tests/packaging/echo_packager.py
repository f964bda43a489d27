"""A packager of the framework-free platform, as another distribution would write it."""

import json
import os
import signal
from typing import Any

from neuropod.packaging import PackageDraft, packager

Spec = list[dict[str, Any]]

ADDITION_INPUTS: Spec = [
    {"name": n, "dtype": "float32", "shape": ("batch_size",)} for n in ("x", "y")
]
ADDITION_OUTPUTS: Spec = [{"name": "out", "dtype": "float32", "shape": ("batch_size",)}]
ADDITION: dict[str, Any] = {
    "model_name": "addition_model",
    "input_spec": ADDITION_INPUTS,
    "output_spec": ADDITION_OUTPUTS,
    "outputs": {"out": {"op": "sum", "inputs": ["x", "y"]}},
}


@packager(platform="echo")
def create_echo_neuropod(
    draft: PackageDraft, *, outputs: dict[str, Any], model: dict[str, Any] | None = None
) -> None:
    """Packages an echo model.

    outputs: output name to operation. model: further keys of `echo.json`.
    """
    content = {"outputs": outputs, **(model or {})}
    (draft.data_folder / "echo.json").write_text(json.dumps(content, sort_keys=True))


@packager(platform="echo")
def create_large_neuropod(draft: PackageDraft, *, size: int, count: int = 1) -> None:
    """Packages bytes that don't compress.

    size: bytes of each file. count: of files.
    """
    for i in range(count):
        (draft.data_folder / f"weights{i}.bin").write_bytes(os.urandom(size))


@packager(platform="echo")
def create_interrupted_neuropod(draft: PackageDraft) -> None:
    """Is interrupted as by Ctrl-C while it writes."""
    (draft.data_folder / "half.bin").write_bytes(b"half")
    signal.raise_signal(signal.SIGINT)
