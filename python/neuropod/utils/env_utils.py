"""Running a package in a fresh process, by the name that existing code imports."""

import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from neuropod.packaging.self_test import run_in_fresh_process

__all__ = ["eval_in_new_process"]


def eval_in_new_process(
    neuropod_path: str | os.PathLike[str],
    input_data: Mapping[str, Any],
    binary_path: str = sys.executable,
    extra_args: Sequence[str] = (),
    neuropod_load_args: Mapping[str, Any] | None = None,
    **_ignored: Any,
) -> dict[str, Any]:
    """Loads the package in another Python process, runs it once and returns its outputs.

    `binary_path`: the interpreter; `extra_args`: its own options. Raises what loading or running
    raised there.
    """
    return run_in_fresh_process(
        os.fspath(neuropod_path), input_data, neuropod_load_args or {}, binary_path, extra_args
    )
