"""The folder of plug-ins: who may change it, and what is recorded beside each plug-in."""

import fcntl
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from neuropod.backend_installer.build import Report
from neuropod.backend_installer.errors import BackendInstallError

RECORD_NAME: Final = "installation.json"
MANIFEST_NAME: Final = "backend.json"
ENVIRONMENTS_NAME: Final = "environments"
"""The folder of private environments, beside that of plug-ins."""


def user_folder() -> Path:
    """Where plug-ins go unless another folder is chosen. BackendInstallError without a home."""
    from neuropod import _native

    folder = _native.user_backend_folder()
    if not folder:
        raise BackendInstallError(
            "there is no folder for plug-ins: neither XDG_DATA_HOME nor HOME is set; --to DIR chooses "
            "one"
        )
    return Path(folder).absolute()


def read_record(directory: Path) -> dict[str, Any]:
    """What the installation wrote beside the plug-in; empty if it wasn't installed by us."""
    try:
        record = json.loads((directory / RECORD_NAME).read_bytes())
    except (OSError, ValueError):
        return {}
    return record if isinstance(record, dict) else {}


@contextmanager
def lock_folder(folder: Path, report: Report) -> Iterator[None]:
    """Held by one installation or removal at a time; the kernel gives it back if the process dies."""
    with (folder / ".lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            report("waiting for another installation to finish …")
            fcntl.flock(file, fcntl.LOCK_EX)
        _remove_leftovers(folder)
        yield


def _remove_leftovers(folder: Path) -> None:
    """What processes that were killed left: whoever holds the lock knows that nobody uses it."""
    for place in (folder, folder.parent / ENVIRONMENTS_NAME):
        for pattern in (".building-*", ".removed-*"):
            for leftover in place.glob(pattern):
                shutil.rmtree(leftover, ignore_errors=True)
