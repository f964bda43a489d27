"""The framework of a Python environment, found without importing it."""

import hashlib
import importlib.util
import re
import sys
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from neuropod.backend_installer.sources import PluginSources
from neuropod.errors import BackendNotFoundError

_RELEASE = re.compile(r"(\d+)(?:\.(\d+))?(?:\.(\d+))?[.\d]*")
_SHARED_LIBRARY = re.compile(r"\.so(\.[\d.]+)?$")


@dataclass(frozen=True)
class Framework:
    """One installed framework."""

    version: str
    """As its distribution says it, e.g. "2.13.0+cpu"."""

    semver: str
    """The same as a semantic version."""

    module_folder: Path
    """The folder that `import` would load."""

    library_hash: str
    """Changes with the content and the place of its shared libraries; 12 hex digits."""

    include_folder: Path | None = None
    """Where its headers lie; None: the module's own `include`."""

    library_folder: Path | None = None
    """Where its libraries lie; None: the module's own `lib`."""

    dependency_folders: tuple[Path, ...] = ()
    """Where libraries lie that it needs and the system's loader wouldn't find."""


def find_framework(sources: PluginSources, environment: Path | None = None) -> Framework:
    """Looks the plug-in's framework up. BackendNotFoundError if it isn't there or too old.

    environment: the site-packages folder to look in; None: what this process would import.
    """
    distribution = _installed_distribution(sources.distributions, environment)
    folder = _module_folder(sources.python_module, environment)
    if distribution is None or folder is None:
        raise BackendNotFoundError(
            f"the plug-in for platform '{sources.platform}' needs {sources.framework}, which the "
            f"environment of {sys.executable} lacks; `{sys.executable} -m pip install "
            f"{sources.distributions[0]}` adds it"
        )
    version = distribution.version
    minimum = sources.minimum_version
    if minimum is not None and release_of(version) < release_of(minimum):
        reason = f" ({sources.minimum_reason})" if sources.minimum_reason else ""
        raise BackendNotFoundError(
            f"{sources.framework} {version} in {folder} is too old for the plug-in for platform "
            f"'{sources.platform}': it needs {minimum} or newer{reason}"
        )
    return Framework(version, semver_of(version), folder, _library_hash(distribution, folder))


def release_of(version: str) -> tuple[int, ...]:
    """`"2.13.0+cpu"` is `(2, 13, 0)`."""
    match = _RELEASE.match(version)
    return tuple(int(part or 0) for part in match.groups()) if match else (0, 0, 0)


def semver_of(version: str) -> str:
    """A Python version as a semantic one: `"2.14.0.dev20260101+cpu"` is
    `"2.14.0-dev20260101+cpu"`, `"2.1"` is `"2.1.0"`."""
    public, _, local = version.partition("+")
    match = _RELEASE.match(public)
    suffix = public[match.end() :] if match else public
    identifiers = [part for part in re.split(r"[^0-9A-Za-z]+", suffix) if part]
    result = ".".join(str(part) for part in release_of(public))
    # A post-release is newer than its release; as a pre-release it would be older.
    if identifiers and not identifiers[0].startswith("post"):
        result += "-" + ".".join(identifiers)
    builds = [part for part in re.split(r"[^0-9A-Za-z]+", local) if part]
    return result + ("+" + ".".join(builds) if builds else "")


def _installed_distribution(
    names: tuple[str, ...], environment: Path | None
) -> metadata.Distribution | None:
    for name in names:
        if environment is not None:
            found = metadata.distributions(name=name, path=[str(environment)])
            for distribution in found:
                return distribution
            continue
        try:
            return metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue
    return None


def _module_folder(module: str, environment: Path | None) -> Path | None:
    if environment is not None:
        folder = environment / module
        return folder if (folder / "__init__.py").is_file() else None
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin).resolve().parent


def _library_hash(distribution: metadata.Distribution, folder: Path) -> str:
    """Over what the distribution's own record says of its libraries, which are too large to read.

    A record without hashes (an installation by hand) is replaced by sizes and times.
    """
    digest = hashlib.sha256(str(folder).encode())
    recorded = sorted(
        f"{file}={file.hash.value}"
        for file in distribution.files or ()
        if file.hash is not None and _SHARED_LIBRARY.search(file.name)
    )
    if not recorded:
        libraries = sorted(p for p in folder.rglob("*.so*") if p.is_file())
        recorded = [f"{p}={p.stat().st_size}={p.stat().st_mtime_ns}" for p in libraries]
    digest.update("\n".join(recorded).encode())
    return digest.hexdigest()[:12]
