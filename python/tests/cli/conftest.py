import sys
from pathlib import Path

import numpy as np
import pytest

# The packager of the framework-free platform is shared with the packaging tests.
sys.path.append(str(Path(__file__).parent.parent / "packaging"))

from echo_packager import ADDITION, create_echo_neuropod


@pytest.fixture
def addition(tmp_path):
    """out = x + y, packaged as a zip."""
    create_echo_neuropod(
        neuropod_path=tmp_path / "addition.neuropod",
        version="1.2",
        description="[bold]adds[/bold]",
        **ADDITION,
    )
    return str(tmp_path / "addition.neuropod")


@pytest.fixture
def inputs(tmp_path):
    """A .npz with both inputs of the addition."""
    x = np.arange(3, dtype="float32")
    np.savez(tmp_path / "inputs.npz", x=x, y=x)
    return str(tmp_path / "inputs.npz")


@pytest.fixture
def picture_model(tmp_path):
    """Returns its picture, uint8 (4, 6, 3)."""
    spec = {"dtype": "uint8", "shape": (4, 6, 3)}
    create_echo_neuropod(
        neuropod_path=tmp_path / "picture.neuropod",
        model_name="picture",
        input_spec=[{"name": "image", **spec}],
        output_spec=[{"name": "same", **spec}],
        outputs={"same": {"op": "identity", "input": "image"}},
    )
    return str(tmp_path / "picture.neuropod")
