from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torchscript_packages import Load, LoadModule, Spec, WritePackage, write_torchscript_package

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


@pytest.fixture(params=[False, True], ids=["in_process", "out_of_process"])
def use_ope(request: pytest.FixtureRequest) -> bool:
    """What a model promises it promises in both modes: tests that ask for this run in each."""
    return bool(request.param)


@pytest.fixture
def load(use_ope: bool) -> Load:
    """`load_neuropod()` in each mode."""

    def load(path: Path, **options: Any) -> Neuropod:
        return load_neuropod(path, use_ope=use_ope, **options)

    return load


def _packs_and_loads(write_package: WritePackage, use_ope: bool) -> Iterator[LoadModule]:
    models: list[Neuropod] = []

    def load(
        module: torch.nn.Module | bytes,
        inputs: Sequence[Spec],
        outputs: Sequence[Spec],
        **config: Any,
    ) -> Neuropod:
        config.setdefault("folder", f"model_{len(models)}")
        models.append(
            load_neuropod(write_package(module, inputs, outputs, **config), use_ope=use_ope)
        )
        return models[-1]

    yield load
    for model in models:
        model.close()


@pytest.fixture
def load_module(write_package: WritePackage, use_ope: bool) -> Iterator[LoadModule]:
    """Packages and loads in one, in each mode: `load_module(module, inputs, outputs, **config)`."""
    yield from _packs_and_loads(write_package, use_ope)


@pytest.fixture
def load_module_here(write_package: WritePackage) -> Iterator[LoadModule]:
    """The same in this process only, for what a test can see nowhere else."""
    yield from _packs_and_loads(write_package, use_ope=False)
