import os
import resource
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

_NOBODY = 65534


@contextmanager
def _mounted(folder: Path, options: str) -> Iterator[bool]:
    """A tmpfs at `folder`; False where mounting isn't permitted."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", options, "none", str(folder)]
    try:
        mounted = subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        mounted = False
    try:
        yield mounted
    finally:
        if mounted:
            subprocess.run(["umount", str(folder)], check=True)


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    """A folder in which no more than 1 MiB can be written.

    A small tmpfs; without the right to mount, a limit of 512 KiB on each file of this process.
    """
    folder = tmp_path / "small"
    with _mounted(folder, "size=1m") as mounted:
        if mounted:
            yield folder
            return
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (512 << 10, hard))
        try:
            yield folder
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.fixture
def read_only_folder(tmp_path: Path) -> Iterator[Path]:
    """A folder that can't be written.

    Root may write what permissions forbid, so it gets a mount or, without the right to mount, another
    user's rights for a while.
    """
    with _mounted(tmp_path / "read_only", "ro,size=1m") as mounted:
        if mounted:
            yield tmp_path / "read_only"
            return
    with tempfile.TemporaryDirectory(prefix="read_only") as folder:
        Path(folder).chmod(0o555)
        user = os.geteuid()
        os.seteuid(user or _NOBODY)
        try:
            yield Path(folder)
        finally:
            os.seteuid(user)
            Path(folder).chmod(0o755)
