"""What the core's tests do to echo's workers, done to TorchScript's: they are killed at random moments, as
are their hosts, and called very often (docs/releasing.md has both for longer)."""

import subprocess
from pathlib import Path

import pytest
import torch
from installed_prefix import BUILD

from neuropod.packagers import create_torchscript_neuropod

pytestmark = pytest.mark.slow


class Double(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"y": 2 * x}


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("packages") / "double.neuropod"
    spec = {"name": "x", "dtype": "float32", "shape": (None,)}
    create_torchscript_neuropod(
        neuropod_path=str(path),
        model_name="double",
        module=torch.jit.script(Double()),
        input_spec=[spec],
        output_spec=[spec | {"name": "y"}],
    )
    return path


@pytest.mark.parametrize(("program", "count"), [("kill", 10), ("soak", 20_000)])
def test_nothing_is_wrong_and_nothing_is_left(package: Path, program: str, count: int) -> None:
    command = [BUILD / "bin" / f"worker_{program}_test", str(count), package]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    print(done.stdout)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert "0 wrong" in done.stdout
