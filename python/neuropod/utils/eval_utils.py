"""Test data and self-tests by the names that existing code imports."""

import json
import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from neuropod.packaging import test_data as _test_data
from neuropod.packaging.comparison import check_outputs
from neuropod.packaging.config import CONFIG_NAME
from neuropod.packaging.self_test import run_self_test

__all__ = [
    "TEST_DATA_FILENAME",
    "check_output_matches_expected",
    "load_and_test_neuropod",
    "load_test_data",
    "print_output_summary",
    "save_test_data",
]

TEST_DATA_FILENAME = _test_data.PICKLE_NAME

_logger = logging.getLogger(__name__)


def check_output_matches_expected(out: Mapping[str, Any], expected_out: Mapping[str, Any]) -> None:
    """Compares the outputs that are expected. Raises a ValueError that names the worst element."""
    check_outputs(out, expected_out)


def print_output_summary(out: Mapping[str, Any]) -> None:
    """Logs the name, dtype and shape of each output."""
    for name, value in out.items():
        array = np.asarray(value)
        _logger.info("output %r: %s %s", name, array.dtype, array.shape)


def save_test_data(
    neuropod_path: str | os.PathLike[str], test_input_data: Any, test_expected_out: Any
) -> None:
    """Writes `test_data.pkl` into the folder of a package."""
    _test_data.write_pickled(Path(neuropod_path), test_input_data, test_expected_out)


def load_test_data(neuropod_path: str | os.PathLike[str]) -> dict[str, Any] | None:
    """`{"test_input": …, "test_output": …}` of a package's folder, or None if there is none.

    Only plain containers, numbers, strings and numpy arrays are read; anything else is an
    InvalidPackageError.
    """
    package = Path(neuropod_path)
    data = _test_data.read_test_data(package, _dtypes(package))
    if data is None:
        _logger.info("no test data in %s", package)
    return data


def load_and_test_neuropod(
    neuropod_path: str | os.PathLike[str],
    test_input_data: Mapping[str, Any],
    test_expected_out: Mapping[str, Any] | None = None,
    neuropod_load_args: Mapping[str, Any] | None = None,
    **_ignored: Any,
) -> dict[str, Any]:
    """Loads the package in a fresh process, runs it once and compares what is expected.

    Returns the outputs. Raises a ValueError if they differ.
    """
    path = os.fspath(neuropod_path)
    out = run_self_test(path, test_input_data, test_expected_out, neuropod_load_args or {})
    if test_expected_out is None:
        print_output_summary(out)
    return out


def _dtypes(package: Path) -> dict[str, str]:
    config_path = package / CONFIG_NAME
    config = json.loads(config_path.read_bytes()) if config_path.is_file() else {}
    specs = [*config.get("input_spec", []), *config.get("output_spec", [])]
    return {spec["name"]: spec["dtype"] for spec in specs}
