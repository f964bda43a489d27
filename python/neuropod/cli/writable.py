"""Files that commands write."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
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


@contextmanager
def written_whole(option: str, path: Path) -> Iterator[Path]:
    """A path to write to; afterwards the file is at `path`. If the block fails, nothing of it stays.

    A device or pipe (`/dev/null`) is written to as it is. Raises UsageError, with the option and the
    file, if it can't be written: the disk is full.
    """
    try:
        if path.exists() and not path.is_file():
            yield path
            return
        with tempfile.TemporaryDirectory(prefix=".neuropod-", dir=path.parent) as folder:
            temporary = Path(folder) / path.name
            yield temporary
            os.replace(temporary, path)  # noqa: PTH105 replaces, and says so
    except OSError as error:
        raise UsageError(f"{option} {path}: can't be written: {error.strerror or error}") from error
