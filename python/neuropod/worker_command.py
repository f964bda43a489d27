"""The command `neuropod-worker`: becomes the program of that name that lies in this package."""

import os
import sys
from pathlib import Path


def main() -> int:
    program = Path(__file__).with_name("bin") / "neuropod-worker"
    if not program.exists():  # an editable installation: beside the library that was installed
        from neuropod import _native

        program = Path(_native.__file__).with_name("bin") / "neuropod-worker"
    os.execv(program, ["neuropod-worker", *sys.argv[1:]])
