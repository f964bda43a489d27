"""Plug-ins as the commands show them."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from neuropod._native import BackendCandidate


@dataclass(frozen=True)
class BackendView:
    """One plug-in that was found."""

    platform: str
    framework: str
    version: str
    abi: str
    gpu: bool
    directory: str
    source: str
    problem: str
    """Why it can't be used; empty if it can."""

    def as_dict(self) -> dict[str, Any]:
        return {
            "platform": self.platform,
            "framework": self.framework,
            "framework_version": self.version,
            "neuropod_abi": self.abi,
            "gpu": self.gpu,
            "directory": self.directory,
            "source": self.source,
            "usable": not self.problem,
            "problem": self.problem or None,
        }


def find_backend_views(
    platform: str = "", version_range: str = "*"
) -> tuple[list[BackendView], list[str]]:
    """Plug-ins, best first, and the places that were searched. Opens none."""
    from neuropod import _native
    from neuropod.options import native_overrides

    search = _native.find_backends(platform, version_range, native_overrides(()))
    return [_view(candidate) for candidate in search.candidates], list(search.searched)


def install_hint(platform: str, version_range: str = "*") -> str:
    """The command that adds a plug-in, and how it adds one for another version."""
    command = f"`neuropod backends install {platform}`"
    if version_range == "*":
        return command
    return (
        f"{command} (with --framework-version or --from-prefix for another version than this "
        "environment's)"
    )


def serving_view(views: list[BackendView]) -> BackendView | None:
    """The one that a load would take: the first that can be used."""
    return next((view for view in views if not view.problem), None)


def _view(candidate: "BackendCandidate") -> BackendView:
    from neuropod import _native

    manifest = candidate.manifest
    problem = candidate.rejected or _native.find_library_conflict(manifest)
    if problem and manifest.neuropod_abi != _native.ABI_VERSION:
        problem = _with_own_command(problem, manifest.platform, Path(manifest.directory))
    return BackendView(
        manifest.platform,
        manifest.framework,
        manifest.framework_version,
        manifest.neuropod_abi,
        manifest.gpu,
        manifest.directory,
        candidate.source,
        problem,
    )


def _with_own_command(problem: str, platform: str, directory: Path) -> str:
    """The remedy with the options by which this very plug-in was installed."""
    from neuropod.backend_installer.plugin_folder import read_record

    command = read_record(directory).get("command")
    usual = f"`neuropod backends install {platform}`"
    return problem.replace(usual, f"`{command}`") if command else problem
