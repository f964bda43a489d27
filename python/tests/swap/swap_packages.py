"""Packages of one problem API, each with a mark that tells which model answered."""

import sys
from pathlib import Path

# Packages written by hand are shared with the binding's tests.
sys.path.append(str(Path(__file__).parent.parent / "binding"))

from echo_packages import write_identity, write_package

__all__ = ["INPUTS", "OUTPUTS", "write_echo", "write_identity", "write_package"]

INPUTS = [("x", "float32", ["n"])]
OUTPUTS = [("y", "float32", ["n"]), ("first_mark", "int64", [1]), ("last_mark", "int64", [1])]


def write_echo(folder: Path, mark: int, **model: object) -> Path:
    """y = 2 x; both marks are `mark`."""
    constant = {"op": "constant", "dtype": "int64", "shape": [1], "values": [mark]}
    return write_package(
        folder,
        name=folder.name,
        inputs=INPUTS,
        outputs=OUTPUTS,
        model={
            "outputs": {
                "y": {"op": "scale", "input": "x", "by": 2},
                "first_mark": constant,
                "last_mark": constant,
            },
            **model,
        },
    )
