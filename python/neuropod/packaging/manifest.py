"""`manifest.json`: the hash of every file, compared when a package is loaded."""

import hashlib
import json
from pathlib import Path
from typing import Final

from neuropod.packaging.config import FORMAT_VERSION

MANIFEST_NAME: Final = "manifest.json"
SIGNATURE_NAME: Final = "signature.json"
_MANIFEST_VERSION = 1


def sha256_of_file(path: Path | str) -> str:
    """Hex SHA-256 of a file's content, read in pieces."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def list_files(folder: Path) -> list[str]:
    """Every file below `folder`, by its path relative to it with '/', sorted."""
    return sorted(
        path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()
    )


def write_manifest(package: Path) -> None:
    """Writes `manifest.json` over every other file that is in `package` now but a signature.

    The version of the package's format stands here, so that the `config.json` of a package that uses
    nothing new stays byte for byte what older tools write and read.
    """
    hashes = {
        name: sha256_of_file(package / name)
        for name in list_files(package)
        if name not in (MANIFEST_NAME, SIGNATURE_NAME)
    }
    content = {
        "files": hashes,
        "format_version": FORMAT_VERSION,
        "manifest_version": _MANIFEST_VERSION,
    }
    (package / MANIFEST_NAME).write_text(json.dumps(content, indent=4, sort_keys=True))
