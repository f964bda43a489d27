"""A folder with everything that a set-up would fetch: Debian packages, wheels, and their hashes.

    debian/          packages of requirements/debian.txt and all they depend on, and an index (Packages)
    wheels/          what requirements/*.txt ask for, and all that depends on
    manifest.json    for which Python, Debian and architecture it is, and each file's size and SHA-256

`make offline-bundle` writes it, `make setup OFFLINE_DIR=…` sets a checkout up from it.
"""

import hashlib
import json
import platform
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from setup_environment.progress import SetupError, say

FORMAT: Final = 1
MANIFEST_NAME: Final = "manifest.json"
DEBIAN_FOLDER: Final = "debian"
WHEELS_FOLDER: Final = "wheels"
_CHUNK_BYTES: Final = 1 << 20


@dataclass(frozen=True)
class OfflineBundle:
    """One that was checked against its manifest, and fits this machine."""

    folder: Path

    @property
    def debian(self) -> Path:
        return self.folder / DEBIAN_FOLDER

    @property
    def wheels(self) -> Path:
        return self.folder / WHEELS_FOLDER


def describe_machine() -> dict[str, str]:
    """What a bundle is made for, and fits only."""
    return {
        "python": f"{sys.version_info[0]}.{sys.version_info[1]}",
        "architecture": platform.machine(),
        "system": _system_name(),
    }


def write_manifest(folder: Path) -> dict[str, Any]:
    """Lists every file below `folder` with its size and hash."""
    files = {
        str(path.relative_to(folder)): {"bytes": path.stat().st_size, "sha256": hash_file(path)}
        for path in _files_of(folder)
    }
    manifest = {"format": FORMAT, **describe_machine(), "files": files}
    (folder / MANIFEST_NAME).write_text(json.dumps(manifest, indent=2) + "\n")
    return manifest


def open_bundle(folder: Path) -> OfflineBundle:
    """Checks a bundle. SetupError says what is missing, changed or made for another machine."""
    manifest = _read_manifest(folder)
    here = describe_machine()
    for key, found in here.items():
        if manifest.get(key) != found:
            raise SetupError(
                f"the bundle in {folder} was made for {key} {manifest.get(key)}, this is {found}: make "
                "one there that fits (`make offline-bundle PYTHON=…` on a machine like this one)"
            )
    files: dict[str, dict[str, Any]] = manifest["files"]
    say(f"checking {len(files)} files of {folder}")
    for name, entry in files.items():
        path = folder / name
        if not path.is_file():
            raise SetupError(f"the bundle in {folder} lacks {name}: copy it again, whole")
        if path.stat().st_size != entry["bytes"] or hash_file(path) != entry["sha256"]:
            raise SetupError(
                f"{path} isn't the file that its manifest lists: copy the bundle again, whole"
            )
    return OfflineBundle(folder)


def hash_file(path: Path) -> str:
    """SHA-256, in hexadecimal."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def index_debian_packages(folder: Path) -> None:
    """Writes the index by which apt takes packages from a folder."""
    entries = []
    for package in sorted(folder.glob("*.deb")):
        answer = subprocess.run(
            ["dpkg-deb", "--field", str(package)], capture_output=True, text=True, check=True
        )
        entries.append(
            f"{answer.stdout.rstrip()}\nFilename: ./{package.name}\n"
            f"Size: {package.stat().st_size}\nSHA256: {hash_file(package)}\n"
        )
    (folder / "Packages").write_text("\n".join(entries))


def _read_manifest(folder: Path) -> dict[str, Any]:
    path = folder / MANIFEST_NAME
    try:
        manifest = json.loads(path.read_bytes())
    except OSError as error:
        raise SetupError(
            f"OFFLINE_DIR={folder} is no bundle: {path.name} can't be read ({error.strerror}); "
            "`make offline-bundle` makes one"
        ) from error
    except ValueError as error:
        raise SetupError(f"{path} is no valid JSON: {error}") from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise SetupError(f"{path} isn't of format {FORMAT}: make the bundle with this checkout")
    return manifest


def _files_of(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path != folder / MANIFEST_NAME:
            yield path


def _system_name() -> str:
    """`"debian 12"`."""
    try:
        release = platform.freedesktop_os_release()
    except OSError:
        return "unknown"
    return f"{release.get('ID', 'unknown')} {release.get('VERSION_ID', '')}".strip()
