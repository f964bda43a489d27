"""The plug-in sources that this installation ships."""

import importlib.util
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from neuropod.backend_installer.errors import BackendInstallError
from neuropod.errors import InvalidArgumentError

DESCRIPTION_NAME: Final = "plugin.json"


@dataclass(frozen=True)
class PrefixLayout:
    """How to find the framework in a folder that no Python environment knows."""

    header: str
    """Below a folder `include`."""

    libraries: tuple[str, ...]
    """Names without `lib` and `.so`, which lie in one folder; each needs those before it."""

    minimum_version: str
    version_header: str
    version_macro: str
    abi_library: str
    abi_symbol: str
    """A regular expression that finds a name of the new C++ ABI in that library."""


@dataclass(frozen=True)
class PluginSources:
    """A plug-in's sources and what its `plugin.json` says."""

    platform: str
    folder: Path
    prefix: Path
    """The installed Neuropod: `lib/`, `include/` and `share/` lie here."""

    framework: str
    """For people, e.g. "torch"."""

    distributions: tuple[str, ...]
    """Python distributions that bring the framework; the first installed one counts."""

    python_module: str
    minimum_version: str | None
    minimum_reason: str
    """Why older versions can't be used; may be empty."""

    prefix_layout: PrefixLayout | None = None
    """None: it is built against Python environments only."""


def installed_prefix() -> Path:
    """Where the native module lies, found without importing it."""
    spec = importlib.util.find_spec("neuropod._native")
    if spec is None or spec.origin is None:
        raise BackendInstallError(
            "neuropod's native module isn't installed; `pip install .` in a checkout installs it"
        )
    return Path(spec.origin).resolve().parent


def shipped_platforms() -> list[str]:
    """The platforms whose plug-ins can be built here."""
    folder = _sources_folder(installed_prefix())
    return sorted(path.parent.name for path in folder.glob(f"*/{DESCRIPTION_NAME}"))


def find_sources(platform: str) -> PluginSources:
    """The sources of the plug-in for `platform`. InvalidArgumentError if none are shipped."""
    prefix = installed_prefix()
    folder = _sources_folder(prefix) / platform
    description = folder / DESCRIPTION_NAME
    if "/" in platform or not description.is_file():
        raise InvalidArgumentError(
            f"no sources of a plug-in for platform {platform!r} in {folder.parent}; "
            f"there are: {', '.join(shipped_platforms()) or 'none'}"
        )
    try:
        content = json.loads(description.read_bytes())
        return _parse(content, folder, prefix)
    except (ValueError, KeyError, TypeError) as error:
        raise BackendInstallError(f"{description} can't be used: {error!r}") from error


def _sources_folder(prefix: Path) -> Path:
    return prefix / "share" / "neuropod" / "backends"


def _parse(content: dict[str, Any], folder: Path, prefix: Path) -> PluginSources:
    distributions = content.get("distributions") or [content["distribution"]]
    return PluginSources(
        platform=str(content["platform"]),
        folder=folder,
        prefix=prefix,
        framework=str(content.get("framework", content["python_module"])),
        distributions=tuple(str(name) for name in distributions),
        python_module=str(content["python_module"]),
        minimum_version=content.get("minimum_version"),
        minimum_reason=str(content.get("minimum_version_reason", "")),
        prefix_layout=_parse_prefix(content["prefix"]) if "prefix" in content else None,
    )


def _parse_prefix(content: dict[str, Any]) -> PrefixLayout:
    return PrefixLayout(
        header=str(content["header"]),
        libraries=tuple(str(name) for name in content["libraries"]),
        minimum_version=str(content["minimum_version"]),
        version_header=str(content["version_header"]),
        version_macro=str(content["version_macro"]),
        abi_library=str(content["abi_library"]),
        abi_symbol=str(content["abi_symbol"]),
    )
