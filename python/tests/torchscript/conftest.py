from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torchscript_packages import LoadModule, Spec, WritePackage, write_torchscript_package

from neuropod import load_neuropod
from neuropod.executor import Neuropod


@pytest.fixture
def write_package(tmp_path: Path) -> WritePackage:
    """`write_package(module, inputs, outputs, folder="package", **config)` returns a package's path."""

    def write(
        module: torch.nn.Module | bytes,
        inputs: Sequence[Spec],
        outputs: Sequence[Spec],
        folder: str = "package",
        **config: Any,
    ) -> Path:
        return write_torchscript_package(tmp_path / folder, module, inputs, outputs, **config)

    return write


@pytest.fixture
def load_module(write_package: WritePackage) -> Iterator[LoadModule]:
    """Packages and loads in one: `load_module(module, inputs, outputs, **config)`."""
    models: list[Neuropod] = []

    def load(
        module: torch.nn.Module | bytes,
        inputs: Sequence[Spec],
        outputs: Sequence[Spec],
        **config: Any,
    ) -> Neuropod:
        config.setdefault("folder", f"model_{len(models)}")
        models.append(load_neuropod(write_package(module, inputs, outputs, **config)))
        return models[-1]

    yield load
    for model in models:
        model.close()
