"""Plug-ins as the commands show them."""

from dataclasses import dataclass
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


def _view(candidate: "BackendCandidate") -> BackendView:
    from neuropod import _native

    manifest = candidate.manifest
    problem = candidate.rejected or _native.find_library_conflict(manifest)
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
