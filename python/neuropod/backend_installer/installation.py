"""Putting a built plug-in in its place."""

import fcntl
import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from neuropod.backend_installer.build import Report, build_plugin
from neuropod.backend_installer.errors import BackendInstallError
from neuropod.backend_installer.framework import Framework, find_framework
from neuropod.backend_installer.sources import PluginSources, find_sources
from neuropod.backend_installer.toolchain import find_toolchain

_RECORD_NAME: Final = "installation.json"
_MANIFEST_NAME: Final = "backend.json"


@dataclass(frozen=True)
class InstalledBackend:
    """A plug-in in its place."""

    platform: str
    framework: str
    framework_version: str
    directory: Path
    built: bool
    """False: it was there already and still fits."""

    seconds: float


def install_backend(
    platform: str, *, force: bool = False, folder: Path | None = None, report: Report = print
) -> InstalledBackend:
    """Builds the plug-in for `platform` and puts it into the user's folder of plug-ins.

    Nothing is built if the plug-in that is there was made from the same sources, headers and
    framework, unless `force`. `folder`: another folder of plug-ins. `report` gets lines of progress.
    Two installations at once wait for each other; the plug-in appears in one step, or not at all.
    Raises InvalidArgumentError for a platform without sources, BackendNotFoundError without the
    framework, MissingToolsError, BackendInstallError.
    """
    started = time.monotonic()
    sources = find_sources(platform)
    framework = find_framework(sources)
    folder = _user_folder() if folder is None else folder.absolute()
    directory = folder / _directory_name(sources, framework)
    fingerprint = _fingerprint(sources, framework)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _lock(folder, report):
            built = force or not _is_current(directory, fingerprint)
            if built:
                report(f"building the {platform} plug-in against {_named(sources, framework)}")
                _build_into(directory, sources, framework, fingerprint, report)
            _remove_orphans(folder, platform, directory, report)
    except OSError as error:
        raise BackendInstallError(
            f"the plug-in can't be put into {folder}: {error.strerror or error}; --to DIR (and "
            "NEUROPOD_BACKEND_PATH) chooses another place"
        ) from error
    return InstalledBackend(
        platform,
        sources.framework,
        framework.version,
        directory,
        built,
        round(time.monotonic() - started, 1),
    )


def _user_folder() -> Path:
    from neuropod import _native

    folder = _native.user_backend_folder()
    if not folder:
        raise BackendInstallError(
            "there is no folder for plug-ins: neither XDG_DATA_HOME nor HOME is set; --to DIR chooses "
            "one"
        )
    return Path(folder).absolute()


def _directory_name(sources: PluginSources, framework: Framework) -> str:
    from neuropod import _native

    abi = _native.ABI_VERSION
    return f"{sources.platform}-{framework.version}-{framework.library_hash}-{abi}"


def _named(sources: PluginSources, framework: Framework) -> str:
    return f"{sources.framework} {framework.version} in {framework.module_folder}"


def _fingerprint(sources: PluginSources, framework: Framework) -> str:
    """Changes with everything a rebuild would see but the compiler."""
    digest = hashlib.sha256(
        f"{framework.version}\n{framework.module_folder}\n{framework.library_hash}".encode()
    )
    include = sources.prefix / "include"
    cmake = sources.prefix / "lib" / "cmake"
    for root in (sources.folder, include, cmake):
        for path in sorted(p for p in root.rglob("*") if p.is_file()):
            digest.update(f"{path.relative_to(root)}\0".encode())
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def _is_current(directory: Path, fingerprint: str) -> bool:
    record = _read_record(directory)
    return record.get("fingerprint") == fingerprint and (directory / _MANIFEST_NAME).is_file()


def _read_record(directory: Path) -> dict[str, Any]:
    try:
        record = json.loads((directory / _RECORD_NAME).read_bytes())
    except (OSError, ValueError):
        return {}
    return record if isinstance(record, dict) else {}


@contextmanager
def _lock(folder: Path, report: Report) -> Iterator[None]:
    """Held by one installation at a time; the kernel gives it back if the process dies."""
    with (folder / ".lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            report("waiting for another installation to finish …")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _build_into(
    directory: Path,
    sources: PluginSources,
    framework: Framework,
    fingerprint: str,
    report: Report,
) -> None:
    toolchain = find_toolchain()
    log_path = directory.parent / ".logs" / f"{directory.name}.log"
    staging = Path(tempfile.mkdtemp(prefix=".building-", dir=directory.parent))
    try:
        plugin = build_plugin(sources, framework, toolchain, staging / "build", log_path, report)
        record = {
            "fingerprint": fingerprint,
            "platform": sources.platform,
            "framework_folder": str(framework.module_folder),
            "log": str(log_path),
        }
        (plugin / _RECORD_NAME).write_text(json.dumps(record, indent=2, sort_keys=True))
        if os.path.lexists(directory):
            directory.rename(staging / "replaced")
        plugin.rename(directory)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _remove_orphans(folder: Path, platform: str, keep: Path, report: Report) -> None:
    """Removes plug-ins that this command built against a framework that is gone since."""
    for directory in folder.glob(f"{platform}-*"):
        framework_folder = _read_record(directory).get("framework_folder")
        if directory != keep and framework_folder and not Path(framework_folder).is_dir():
            shutil.rmtree(directory, ignore_errors=True)
            report(f"removed {directory}: {framework_folder} is gone")
