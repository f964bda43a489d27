"""Errors of building a plug-in."""

from neuropod.errors import NeuropodError


class BackendInstallError(NeuropodError):
    """The plug-in could not be built or put in its place; the text holds the end of the log."""

    code = "load_failed"
    origin = "backend"


class MissingToolsError(BackendInstallError):
    """The compiler or CMake is missing or too old; the text says how to install it."""

    code = "unavailable"
    origin = "resource"
