import sys
from pathlib import Path

import numpy as np
import pytest

# Packages of the framework-free platform are shared with the binding's tests.
sys.path.append(str(Path(__file__).parent.parent / "binding"))
sys.path.append(str(Path(__file__).parent))

from echo_packages import write_package


@pytest.fixture
def scaled(tmp_path):
    """Makes a package whose output `y` is its input `x` times `by`; both (batch,)."""

    def make(name, by, dtype="float32", shape=("batch",), **model):
        return write_package(
            tmp_path / f"{name}.neuropod",
            name=name,
            inputs=[("x", dtype, shape)],
            outputs=[("y", dtype, shape)],
            model={"outputs": {"y": {"op": "scale", "input": "x", "by": by}}, **model},
        )

    return make


@pytest.fixture
def identity(tmp_path):
    """Makes a package whose outputs are its inputs: {"output": (dtype, shape)} of input `in_output`."""

    def make(name="model", **outputs):
        return write_package(
            tmp_path / f"{name}.neuropod",
            name=name,
            inputs=[(f"in_{key}", *spec) for key, spec in outputs.items()],
            outputs=[(key, *spec) for key, spec in outputs.items()],
            model={"outputs": {k: {"op": "identity", "input": f"in_{k}"} for k in outputs}},
        )

    return make


@pytest.fixture
def rows():
    """100 rows: `x`, and `right`, which is 1.1 x."""
    x = np.random.default_rng(1).random(100).astype("float32")
    return {"x": x, "right": 1.1 * x}
