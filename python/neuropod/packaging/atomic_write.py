"""Nothing at the target until it is whole; nothing left beside it on failure."""

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from neuropod.errors import InvalidArgumentError
from neuropod.packaging.config import CONFIG_NAME
from neuropod.packaging.errors import PackageWriteError, TargetExistsError

_NO_HARD_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EMLINK, errno.ENOSYS, errno.EACCES}


def check_target(target: Path, overwrite: bool) -> None:
    """Raises if `target` can't be written: it exists (TargetExistsError), its folder doesn't
    (PackageWriteError), or it is a folder that is no package (InvalidArgumentError)."""
    if not target.parent.is_dir():
        raise PackageWriteError(
            f"can't write the package {target}: the folder {target.parent} doesn't exist",
            errno.ENOENT,
        )
    if not os.path.lexists(target):
        return
    if not overwrite:
        raise TargetExistsError(
            f"{target} exists already; choose another neuropod_path or pass overwrite=True"
        )
    is_folder = target.is_dir() and not target.is_symlink()
    if is_folder and not (target / CONFIG_NAME).is_file() and any(target.iterdir()):
        raise InvalidArgumentError(
            f"{target} is a folder but no package (it holds no {CONFIG_NAME}); it isn't overwritten"
        )


@contextmanager
def staging_folder(target: Path) -> Iterator[Path]:
    """A private folder on the target's file system, gone afterwards whatever happens."""
    folder = Path(tempfile.mkdtemp(prefix=".neuropod-", dir=target.parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def publish(staged: Path, target: Path, staging: Path, overwrite: bool) -> None:
    """Moves the finished file or folder `staged` to `target` in one step.

    `staging` takes what was at the target while it's being replaced. If moving fails, what was
    there before is there again.
    """
    if not overwrite:
        _move_to_free_place(staged, target)
        return
    if not (target.is_dir() and not target.is_symlink()) and staged.is_file():
        staged.replace(target)
        return
    replaced = staging / "replaced"
    try:
        if os.path.lexists(target):
            target.rename(replaced)
        staged.rename(target)
    except BaseException:
        if os.path.lexists(replaced) and not os.path.lexists(target):
            replaced.rename(target)
        raise


def sync_file(path: Path) -> None:
    """Waits until the file's content is on the disk, so that a crash can't leave an empty target."""
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _move_to_free_place(staged: Path, target: Path) -> None:
    """A rename that never replaces: somebody else may have made the target meanwhile."""
    try:
        if staged.is_file():
            _link(staged, target)
        else:
            staged.rename(target)
    except OSError as error:
        if error.errno in (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR):
            raise TargetExistsError(f"{target} appeared while the package was made") from error
        raise


def _link(staged: Path, target: Path) -> None:
    try:
        target.hardlink_to(staged)
    except OSError as error:
        if error.errno not in _NO_HARD_LINKS:
            raise
        if os.path.lexists(target):
            raise FileExistsError(errno.EEXIST, "File exists", str(target)) from error
        staged.rename(target)
