"""Fixtures of the binding's tests."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from echo_packages import write_addition, write_identity

from neuropod import Neuropod, load_neuropod


@pytest.fixture
def addition(tmp_path: Path) -> Iterator[Neuropod]:
    """out = x + y, float32, shape (batch,)."""
    with load_neuropod(write_addition(tmp_path / "addition")) as model:
        yield model


IdentityModels = Callable[[str, Sequence[int | str | None]], Neuropod]


@pytest.fixture(scope="module")
def identity(tmp_path_factory: pytest.TempPathFactory) -> IdentityModels:
    """`identity(dtype, shape)`: a model with y = x, made once per module."""
    models: dict[tuple[str, tuple[int | str | None, ...]], Neuropod] = {}

    def model(dtype: str, shape: Sequence[int | str | None]) -> Neuropod:
        key = (dtype, tuple(shape))
        if key not in models:
            folder = tmp_path_factory.mktemp("identity") / "package"
            models[key] = load_neuropod(write_identity(folder, dtype, shape))
        return models[key]

    return model
