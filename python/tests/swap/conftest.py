import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from swap_packages import write_echo

from neuropod import Neuropod, load_neuropod


@pytest.fixture
def echo(tmp_path: Path) -> Path:
    """y = 2 x, marked 1."""
    return write_echo(tmp_path / "echo", 1)


@pytest.fixture
def other_echo(tmp_path: Path) -> Path:
    """The same, marked 3."""
    return write_echo(tmp_path / "other_echo", 3)


@pytest.fixture
def torchscript(tmp_path: Path) -> Path:
    """The same in TorchScript, marked 2."""
    import torch

    class Doubling(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
            mark = torch.tensor([2])
            return {"first_mark": mark, "y": x + x, "last_mark": mark.clone()}

    folder = write_echo(tmp_path / "torchscript", 2)
    config = folder / "config.json"
    config.write_text(config.read_text().replace('"platform": "echo"', '"platform": "torchscript"'))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        torch.jit.script(Doubling()).save(str(folder / "0" / "data" / "model.pt"))
    return folder


@pytest.fixture
def swappable(echo: Path) -> Iterator[Neuropod]:
    with load_neuropod(echo, swappable=True, visible_device="cpu") as model:
        yield model
