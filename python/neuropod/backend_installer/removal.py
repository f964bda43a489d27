"""Taking a plug-in away, with the private environment that only it uses."""

import json
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from neuropod.backend_installer.build import Report
from neuropod.backend_installer.errors import BackendInstallError
from neuropod.backend_installer.plugin_folder import (
    MANIFEST_NAME,
    RECORD_NAME,
    lock_folder,
    read_record,
    user_folder,
)
from neuropod.backend_installer.private_environment import environments_folder
from neuropod.errors import InvalidArgumentError, NeuropodError, NotFoundError


@dataclass(frozen=True)
class RemovedBackend:
    """What was removed."""

    directory: Path
    environment: Path | None


@dataclass(frozen=True)
class _Installed:
    directory: Path
    platform: str
    version: str


def remove_backend(
    name: str,
    *,
    framework_version: str | None = None,
    folder: Path | None = None,
    report: Report = print,
) -> RemovedBackend:
    """Removes one plug-in from the user's folder (or `folder`).

    name: its folder's name, or a platform, which `framework_version` makes exact. The plug-in goes in
    one step. Its private environment goes too, unless another plug-in was built against it.
    Raises NotFoundError if there is none of that name, InvalidArgumentError if several match or if
    it lies in a place that this command doesn't manage.
    """
    chosen_folder = user_folder() if folder is None else folder.absolute()
    if not chosen_folder.is_dir():
        raise _not_found(name, framework_version, chosen_folder, [])
    try:
        with lock_folder(chosen_folder, report):
            installed = _list_installed(chosen_folder)
            match = _choose(name, framework_version, chosen_folder, installed)
            environment = _own_environment(match, chosen_folder, installed)
            for path in (match.directory, environment):
                if path is not None:
                    _remove_folder(path)
    except NeuropodError:
        raise
    except OSError as error:
        raise BackendInstallError(
            f"the plug-in can't be removed from {chosen_folder}: {error.strerror or error}"
        ) from error
    return RemovedBackend(match.directory, environment)


def _list_installed(folder: Path) -> list[_Installed]:
    found = []
    for directory in sorted(folder.iterdir()):
        if directory.name.startswith(".") or not directory.is_dir():
            continue
        try:
            manifest = json.loads((directory / MANIFEST_NAME).read_bytes())
            platform, version = manifest["platform"], manifest["framework_version"]
        except (OSError, ValueError, KeyError, TypeError):
            platform = version = ""  # a broken one can be removed by its name
        found.append(_Installed(directory, str(platform), str(version)))
    return found


def _choose(
    name: str, version: str | None, folder: Path, installed: Sequence[_Installed]
) -> _Installed:
    matches = [
        plugin
        for plugin in installed
        if name in (plugin.directory.name, plugin.platform)
        and (version is None or _is_version(plugin.version, version))
    ]
    if not matches:
        raise _not_found(name, version, folder, installed)
    if len(matches) > 1:
        names = ", ".join(f"{p.directory.name} ({p.version})" for p in matches)
        raise InvalidArgumentError(
            f"several plug-ins for {name!r} are in {folder}: {names}; give one of these names, or "
            "--framework-version"
        )
    _check_removable(matches[0])
    return matches[0]


def _is_version(found: str, wanted: str) -> bool:
    """`"2.13.0"` means `"2.13.0+cpu"` too."""
    return wanted in (found, found.partition("+")[0])


def _check_removable(plugin: _Installed) -> None:
    if plugin.platform and not (plugin.directory / RECORD_NAME).is_file():
        raise InvalidArgumentError(
            f"{plugin.directory} was not made by `neuropod backends install`, so this command leaves "
            f"it: `rm -r {plugin.directory}` removes it"
        )


def _not_found(
    name: str, version: str | None, folder: Path, installed: Sequence[_Installed]
) -> Exception:
    which = f"{name!r}" + (f", version {version}," if version else "")
    elsewhere = _places_elsewhere(name, folder)
    if elsewhere:
        return InvalidArgumentError(
            f"no plug-in {which} is in {folder}, the only place this command changes; {elsewhere[0]} "
            "belongs to who put it there: remove it by the same means (pip, apt, or NEUROPOD_BACKEND_PATH "
            "without it)"
        )
    names = ", ".join(plugin.directory.name for plugin in installed)
    return NotFoundError(f"no plug-in {which} is in {folder}; there are: {names or 'none'}")


def _places_elsewhere(name: str, folder: Path) -> list[str]:
    from neuropod import _native

    manifests = (candidate.manifest for candidate in _native.find_backends("").candidates)
    return [
        manifest.directory
        for manifest in manifests
        if name in (manifest.platform, Path(manifest.directory).name)
        and Path(manifest.directory).parent != folder
    ]


def _own_environment(
    plugin: _Installed, folder: Path, installed: Sequence[_Installed]
) -> Path | None:
    recorded = read_record(plugin.directory).get("environment")
    if not recorded:
        return None
    environment = Path(recorded)
    shared = any(
        read_record(other.directory).get("environment") == recorded
        for other in installed
        if other != plugin
    )
    managed = environment.parent == environments_folder(folder)
    return environment if managed and not shared and environment.is_dir() else None


def _remove_folder(path: Path) -> None:
    """Out of sight in one step, then for good."""
    grave = Path(tempfile.mkdtemp(prefix=".removed-", dir=path.parent))
    try:
        path.rename(grave / path.name)
    finally:
        shutil.rmtree(grave, ignore_errors=True)
