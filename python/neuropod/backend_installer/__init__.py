"""Builds a plug-in from the sources that Neuropod ships, against a framework of one's choice.

That is the framework of this environment, of a private environment, or of a folder where it lies.

The sources lie in `share/neuropod/backends/<platform>/` beside the native module: a CMake project of
its own and `plugin.json`, which says which Python distribution the framework comes from. No framework
is imported.
"""

from neuropod.backend_installer.errors import BackendInstallError, MissingToolsError
from neuropod.backend_installer.installation import InstalledBackend, install_backend
from neuropod.backend_installer.removal import RemovedBackend, remove_backend
from neuropod.backend_installer.sources import PluginSources, find_sources, shipped_platforms

__all__ = [
    "BackendInstallError",
    "InstalledBackend",
    "MissingToolsError",
    "PluginSources",
    "RemovedBackend",
    "find_sources",
    "install_backend",
    "remove_backend",
    "shipped_platforms",
]
