"""The package while it is being made, as a packager sees it."""

import errno
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from neuropod.errors import InvalidArgumentError, NotFoundError


@dataclass(frozen=True)
class PackageDraft:
    """The package's tree in a private folder, and its configuration.

    A packager writes below `data_folder` (`0/data`, which exists) or `model_folder` (`0`). Whatever
    it raises ends packaging, and nothing is left behind.
    """

    folder: Path
    """The root of the package."""

    config: Mapping[str, Any]
    """What `config.json` says; checked already."""

    @property
    def model_folder(self) -> Path:
        return self.folder / "0"

    @property
    def data_folder(self) -> Path:
        return self.folder / "0" / "data"

    @property
    def ops_folder(self) -> Path:
        return self.folder / "0" / "ops"

    @property
    def input_spec(self) -> list[dict[str, Any]]:
        """Specs as `config.json` has them: canonical dtypes, shapes as lists."""
        return list(self.config["input_spec"])

    @property
    def output_spec(self) -> list[dict[str, Any]]:
        return list(self.config["output_spec"])

    def require_free_space(self, size: int) -> None:
        """Raises OSError(ENOSPC) unless the disk has `size` bytes left.

        For frameworks that end the process when the disk fills up while they write.
        """
        free = shutil.disk_usage(self.folder).free
        if free < size:
            raise OSError(
                errno.ENOSPC, f"No space left on device: {size:,} bytes needed, {free:,} free"
            )

    def copy_file(self, source: str | os.PathLike[str], target: Path) -> None:
        """Copies the content of a file of the caller's. NotFoundError if there is no such file."""
        source = Path(source)
        if not source.is_file():
            what = "is a folder, not a file" if source.is_dir() else "doesn't exist"
            raise NotFoundError(f"{source} {what}, so it can't go into the package")
        shutil.copyfile(source, target)


def copy_custom_ops(draft: PackageDraft, paths: list[Path]) -> None:
    """Copies custom-op libraries into `0/ops`, which is made even if there are none."""
    draft.ops_folder.mkdir(parents=True)
    for path in paths:
        draft.copy_file(path, draft.ops_folder / path.name)


def custom_op_names(paths: list[Path]) -> list[str]:
    """Base names of the libraries. InvalidArgumentError if two have the same."""
    names = [path.name for path in paths]
    for name in names:
        if names.count(name) > 1:
            raise InvalidArgumentError(
                f"custom_ops has two files named {name!r}; a package keeps base names only, so "
                "rename one of them"
            )
    return names
