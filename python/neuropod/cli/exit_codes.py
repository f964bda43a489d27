"""What the command's exit code says."""

from enum import IntEnum
from typing import Final


class ExitCode(IntEnum):
    DONE = 0
    MODEL_FAILED = 1
    WRONG_USAGE = 2
    PACKAGE_UNREADABLE = 3
    NO_USABLE_BACKEND = 4
    WORKER_FAILED = 5
    INTERRUPTED = 130
    TERMINATED = 143


MEANINGS: Final = {
    ExitCode.DONE: "done",
    ExitCode.MODEL_FAILED: "the model or its test failed",
    ExitCode.WRONG_USAGE: "wrong usage, or a file that can't be read or written",
    ExitCode.PACKAGE_UNREADABLE: "the package can't be read",
    ExitCode.NO_USABLE_BACKEND: "no usable backend",
    ExitCode.WORKER_FAILED: "the model's process died, or the call timed out",
    ExitCode.INTERRUPTED: "interrupted (Ctrl-C)",
    ExitCode.TERMINATED: "terminated (SIGTERM)",
}
"""As `--help` and docs/cli.md show them."""


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
    "worker_died": ExitCode.WORKER_FAILED,
    "timeout": ExitCode.WORKER_FAILED,
}


def exit_code_of(error_code: str) -> ExitCode:
    """The exit code for a Neuropod error's code."""
    return _BY_CODE.get(error_code, ExitCode.MODEL_FAILED)


def help_text() -> str:
    """The exit codes, one a line."""
    return "\n".join(["exit codes:", *(f"  {code:<4d}{text}" for code, text in MEANINGS.items())])
