"""Plug-ins that this process prefers over those that are found."""

import os
from typing import Final, NamedTuple


class RegisteredBackend(NamedTuple):
    """A plug-in: the platform it serves, its framework's version, its library or directory."""

    platform: str
    version: str
    path: str


_registered: Final[list[RegisteredBackend]] = []


def register_backend(platform: str, version: str, so_path: str | os.PathLike[str]) -> None:
    """Prefers a plug-in whenever a model is loaded from now on; of several, the last one registered.

    `so_path` is the plug-in's shared library, or the directory that holds its backend.json.
    `load_neuropod(backend_overrides=…)` goes before it.
    """
    _registered.append(RegisteredBackend(platform, version, os.fspath(so_path)))


def registered_backends() -> tuple[RegisteredBackend, ...]:
    """What was registered, the oldest first."""
    return tuple(_registered)
