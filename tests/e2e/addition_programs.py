"""Programs that package a TorchScript model which adds, as `addition.neuropod`, and run it."""

_MODEL = """
import torch
from neuropod.packagers import create_torchscript_neuropod

class Addition(torch.nn.Module):
    def forward(self, x, y):
        return {"out": x + y}

spec = lambda name: {"name": name, "dtype": "float32", "shape": ("batch",)}
arguments = dict(
    neuropod_path="addition.neuropod",
    model_name="addition",
    module=torch.jit.script(Addition()),
    input_spec=[spec("x"), spec("y")],
    output_spec=[spec("out")],
)
"""

PACKAGE = _MODEL + "create_torchscript_neuropod(**arguments)\n"

PACKAGE_WITH_TEST_DATA = (
    _MODEL
    + """
ones = torch.ones(2).numpy()
create_torchscript_neuropod(
    **arguments, test_input_data={"x": ones, "y": ones}, test_expected_out={"out": 2 * ones}
)
"""
)

RUN = """
import numpy as np
from neuropod import load_neuropod

with load_neuropod("addition.neuropod") as model:
    x = np.arange(3, dtype="float32")
    print(model.infer({"x": x, "y": x})["out"].tolist())
"""
