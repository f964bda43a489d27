"""Builds a plug-in from the sources that Neuropod ships, against the framework of this environment.

The sources lie in `share/neuropod/backends/<platform>/` beside the native module: a CMake project of
its own and `plugin.json`, which says which Python distribution the framework comes from. No framework
is imported.
"""

from neuropod.backend_installer.errors import BackendInstallError, MissingToolsError
from neuropod.backend_installer.installation import InstalledBackend, install_backend
from neuropod.backend_installer.sources import PluginSources, find_sources, shipped_platforms

__all__ = [
    "BackendInstallError",
    "InstalledBackend",
    "MissingToolsError",
    "PluginSources",
    "find_sources",
    "install_backend",
    "shipped_platforms",
]
