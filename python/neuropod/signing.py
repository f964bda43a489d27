"""Signatures of packages: who vouches for what is in them.

    from neuropod.signing import create_key_pair, sign_package, verify_package

    create_key_pair("release.private.pem", "release.public.pem")
    sign_package("detector.neuropod", "release.private.pem")
    verify_package("detector.neuropod", ["release.public.pem"])

`load_neuropod(path, require_signature="release.public.pem")` loads only what that key signed. Keys are
Ed25519 in PEM files, those of the `openssl` program included. `docs/signatures.md` is the guide.
"""

import errno
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from neuropod.options import Path as AnyPath

_PRIVATE_MODE: Final = 0o600
_PUBLIC_MODE: Final = 0o644


def create_key_pair(private_key: "AnyPath", public_key: "AnyPath") -> str:
    """Makes a new pair of keys and returns their id.

    Args:
        private_key: file for the key that signs; only its owner can read it. Whoever has it can sign.
        public_key: file for the key that verifies, to be handed to whoever loads packages.

    Raises FileExistsError if one of them exists: a key that is lost can't be made again.
    """
    from neuropod import _native

    private_path, public_path = Path(os.fsdecode(private_key)), Path(os.fsdecode(public_key))
    if os.path.lexists(public_path):
        raise FileExistsError(
            errno.EEXIST, "exists already, and keys aren't overwritten", str(public_path)
        )
    private_pem, public_pem, key_id = _native.generate_key_pair()
    _write_new(private_path, private_pem, _PRIVATE_MODE)
    try:
        _write_new(public_path, public_pem, _PUBLIC_MODE)
    except BaseException:
        private_path.unlink()
        raise
    return key_id


def sign_package(package: "AnyPath", private_key: "AnyPath", *, add_manifest: bool = False) -> str:
    """Signs a package, a folder or a zip file, in place, and returns the key's id.

    Every file is verified against the manifest first, then the manifest is signed. The package is
    replaced in one step, and only `signature.json` differs. Signatures by other keys stay; a second one
    by the same key takes the first one's place.

    Args:
        package: file or folder.
        private_key: PEM file (Ed25519, not encrypted).
        add_manifest: give a package that has no manifest one, of the files that are there now. The rules
            for its calls stay those of packages without `format_version`.

    Raises:
        InvalidPackageError: it has no manifest, and `add_manifest` is False.
        CorruptPackageError: a file differs from the manifest.
        InvalidArgumentError, NotFoundError: a key that can't be used; nothing at `package`.
        PackageWriteError: an OSError: a full disk, a folder that can't be written.
    """
    from neuropod import _native
    from neuropod.packaging.errors import PackageWriteError

    path = Path(os.path.realpath(os.fsdecode(package)))
    files, key_id = _native.make_signature(path, private_key, add_manifest)
    try:
        _put_files(path, files)
    except OSError as error:
        raise PackageWriteError(
            f"can't sign '{path}': writing into it failed: {error.strerror or error}; it isn't signed",
            error.errno,
        ) from error
    return key_id


def check_signing_key(private_key: "AnyPath") -> None:
    """Raises InvalidArgumentError or NotFoundError if `sign_package` couldn't use the key."""
    from neuropod import _native

    _native.private_key_id(private_key)


def verify_package(package: "AnyPath", public_keys: "AnyPath | Sequence[AnyPath]") -> str:
    """Verifies that one of the keys signed the package and that every file is as it was then.

    Returns the id of the key that did. Nothing of the package is run.

    Raises:
        InvalidPackageError: it has no signature, or only some by other keys, or no manifest.
        CorruptPackageError: something in it was changed.
        InvalidArgumentError, NotFoundError: a key that can't be used; nothing at `package`.
    """
    from neuropod import _native
    from neuropod.options import key_paths

    return _native.verify_signature(package, key_paths(public_keys, "public_keys"))


def package_signers(package: "AnyPath") -> list[str]:
    """The ids of the keys that sign the package, by its own account: nothing is verified."""
    from neuropod import _native

    return _native.list_signers(package)


def _put_files(package: Path, files: Mapping[str, bytes]) -> None:
    if package.is_dir():
        for name, content in sorted(files.items()):
            _write_replacing(package / name, content)
    else:
        _write_into_archive(package, files)


def _write_new(path: Path, text: str, mode: int) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(text)
    except OSError as error:
        path.unlink()
        raise OSError(error.errno, error.strerror, str(path)) from error


def _write_replacing(path: Path, content: bytes) -> None:
    """Puts a file into a folder in one step."""
    from neuropod.packaging.atomic_write import staging_folder, sync_file

    with staging_folder(path) as staging:
        staged = staging / path.name
        staged.write_bytes(content)
        staged.chmod(_PUBLIC_MODE)
        sync_file(staged)
        staged.replace(path)


def _write_into_archive(archive: Path, files: Mapping[str, bytes]) -> None:
    """Replaces the archive by one that has `files` too, in one step."""
    from neuropod.packaging.archive_rewriting import write_with_files
    from neuropod.packaging.atomic_write import publish, staging_folder, sync_file

    with staging_folder(archive) as staging:
        staged = staging / "package.neuropod"
        write_with_files(archive, staged, files)
        shutil.copymode(archive, staged)
        sync_file(staged)
        publish(staged, archive, staging, overwrite=True)
