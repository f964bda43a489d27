"""What the command's exit code says."""

from enum import IntEnum
from typing import Final


class ExitCode(IntEnum):
    DONE = 0
    MODEL_FAILED = 1
    WRONG_USAGE = 2
    PACKAGE_UNREADABLE = 3
    NO_USABLE_BACKEND = 4
    INTERRUPTED = 130


class UsageError(Exception):
    """Something about the command's own arguments or input files."""


_BY_CODE: Final = {
    "invalid_argument": ExitCode.WRONG_USAGE,
    "spec_mismatch": ExitCode.WRONG_USAGE,
    "not_found": ExitCode.WRONG_USAGE,
    "invalid_package": ExitCode.PACKAGE_UNREADABLE,
    "corrupt_package": ExitCode.PACKAGE_UNREADABLE,
    "backend_not_found": ExitCode.NO_USABLE_BACKEND,
    "version_conflict": ExitCode.NO_USABLE_BACKEND,
    "load_failed": ExitCode.NO_USABLE_BACKEND,
}


def exit_code_of(error_code: str) -> ExitCode:
    """The exit code for a Neuropod error's code."""
    return _BY_CODE.get(error_code, ExitCode.MODEL_FAILED)
