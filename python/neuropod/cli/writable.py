"""Folders that files are to be written to."""

import tempfile
from pathlib import Path

from neuropod.cli.exit_codes import UsageError


def why_not_writable(folder: Path) -> str:
    """Why no file can be made in the folder; empty if one can. Nothing stays there."""
    if not folder.exists():
        return "doesn't exist"
    if not folder.is_dir():
        return "is no folder"
    try:
        with tempfile.TemporaryFile(dir=folder):
            return ""
    except OSError as error:
        return error.strerror or str(error)


def check_target(option: str, path: Path) -> None:
    """Raises UsageError if the file can't be written, so that no work is done in vain."""
    if path.is_dir():
        raise UsageError(f"{option} {path}: is a folder")
    if not path.parent.exists():
        raise UsageError(f"{option} {path}: the folder {path.parent} does not exist")
    problem = why_not_writable(path.parent)
    if problem:
        raise UsageError(f"{option} {path}: can't write to {path.parent}: {problem}")
