"""Putting a built plug-in in its place."""

import hashlib
import json
import os
import shlex
import shutil
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from neuropod.backend_installer.build import Report, build_plugin
from neuropod.backend_installer.errors import BackendInstallError
from neuropod.backend_installer.framework import Framework, find_framework
from neuropod.backend_installer.plugin_folder import (
    MANIFEST_NAME,
    RECORD_NAME,
    lock_folder,
    read_record,
    user_folder,
)
from neuropod.backend_installer.prefix_framework import find_framework_in_prefix
from neuropod.backend_installer.private_environment import PrivateEnvironment, ensure_environment
from neuropod.backend_installer.shared_libraries import check_opens
from neuropod.backend_installer.sources import PluginSources, find_sources
from neuropod.backend_installer.toolchain import find_toolchain
from neuropod.errors import InvalidArgumentError, NeuropodError


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
    platform: str,
    *,
    framework_version: str | None = None,
    prefix: Path | None = None,
    force: bool = False,
    folder: Path | None = None,
    report: Report = print,
) -> InstalledBackend:
    """Builds the plug-in for `platform` and puts it into the user's folder of plug-ins.

    It is built against the framework that this process would import; or against `framework_version`,
    for which a private environment is made; or against the one that lies in the folder `prefix`.
    Nothing is built if the plug-in that is there was made from the same sources, headers and
    framework, unless `force`. `folder`: another folder of plug-ins. `report` gets lines of progress.
    Two installations at once wait for each other; the plug-in appears in one step, or not at all,
    and so does a private environment.
    Raises InvalidArgumentError for a platform without sources, BackendNotFoundError without a usable
    framework, MissingToolsError, BackendInstallError.
    """
    if framework_version is not None and prefix is not None:
        raise InvalidArgumentError(
            "--framework-version and --from-prefix exclude each other: a prefix has one version"
        )
    started = time.monotonic()
    sources = find_sources(platform)
    folder = user_folder() if folder is None else folder.absolute()
    origin = _Origin(sources, framework_version, prefix, folder)
    if framework_version is None:
        origin.find(report)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with lock_folder(folder, report):
            framework = origin.find(report)
            directory = folder / _directory_name(sources, framework)
            built = origin.build_if_needed(directory, force, report)
            _remove_orphans(folder, platform, directory, report)
    except NeuropodError:
        raise
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


class _Origin:
    """The framework of one installation, and where it comes from."""

    def __init__(
        self,
        sources: PluginSources,
        framework_version: str | None,
        prefix: Path | None,
        plugin_folder: Path,
    ) -> None:
        self._sources = sources
        self._version = framework_version
        self._prefix = prefix
        self._plugin_folder = plugin_folder
        self._environment: PrivateEnvironment | None = None
        self._environment_is_new = False
        self._framework: Framework | None = None

    def find(self, report: Report) -> Framework:
        """Looks it up once; a private environment is made, for which the folder must be locked."""
        if self._framework is None:
            self._framework = self._find(report)
        return self._framework

    def build_if_needed(self, directory: Path, force: bool, report: Report) -> bool:
        """Builds the plug-in unless the one in `directory` fits. A new environment goes if it fails."""
        framework = self.find(report)
        fingerprint = _fingerprint(self._sources, framework)
        if not force and _is_current(directory, fingerprint):
            return False
        report(
            f"building the {self._sources.platform} plug-in against "
            f"{_named(self._sources, framework)}"
        )
        record = {
            "fingerprint": fingerprint,
            "platform": self._sources.platform,
            "framework_folder": str(framework.module_folder),
            "environment": str(self._environment.folder) if self._environment else None,
            "command": self._command(),
        }
        try:
            _build_into(directory, self._sources, framework, record, report)
        except BaseException:
            if self._environment is not None and self._environment_is_new:
                shutil.rmtree(self._environment.folder, ignore_errors=True)
            raise
        return True

    def _find(self, report: Report) -> Framework:
        if self._prefix is not None:
            return find_framework_in_prefix(self._sources, self._prefix)
        if self._version is None:
            return find_framework(self._sources)
        find_toolchain()  # fails before anything is downloaded
        self._environment, self._environment_is_new = ensure_environment(
            self._sources, self._version, self._plugin_folder, report
        )
        return find_framework(self._sources, self._environment.site_packages)

    def _command(self) -> str:
        """What builds the same plug-in again."""
        command = f"neuropod backends install {self._sources.platform}"
        if self._prefix is not None:
            return f"{command} --from-prefix {shlex.quote(str(self._prefix.absolute()))}"
        return (
            command if self._version is None else f"{command} --framework-version {self._version}"
        )


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
    record = read_record(directory)
    return record.get("fingerprint") == fingerprint and (directory / MANIFEST_NAME).is_file()


def _build_into(
    directory: Path,
    sources: PluginSources,
    framework: Framework,
    record: dict[str, Any],
    report: Report,
) -> None:
    toolchain = find_toolchain()
    log_path = directory.parent / ".logs" / f"{directory.name}.log"
    staging = Path(tempfile.mkdtemp(prefix=".building-", dir=directory.parent))
    try:
        plugin = build_plugin(sources, framework, toolchain, staging / "build", log_path, report)
        _check_opens(plugin, sources)
        record = {**record, "log": str(log_path)}
        (plugin / RECORD_NAME).write_text(json.dumps(record, indent=2, sort_keys=True))
        if os.path.lexists(directory):
            directory.rename(staging / "replaced")
        plugin.rename(directory)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _check_opens(plugin: Path, sources: PluginSources) -> None:
    manifest = json.loads((plugin / MANIFEST_NAME).read_bytes())
    cores = sorted((sources.prefix / "lib").glob("libneuropod.so*"))
    libraries = [str(plugin / path) for path in manifest["libraries"]]
    check_opens(libraries, plugin / manifest["library"], cores[-1:])


def _remove_orphans(folder: Path, platform: str, keep: Path, report: Report) -> None:
    """Removes plug-ins that this command built against a framework that is gone since."""
    for directory in folder.glob(f"{platform}-*"):
        framework_folder = read_record(directory).get("framework_folder")
        if directory != keep and framework_folder and not Path(framework_folder).is_dir():
            shutil.rmtree(directory, ignore_errors=True)
            report(f"removed {directory}: {framework_folder} is gone")
