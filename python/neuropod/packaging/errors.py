"""Errors that only packaging raises. Each is a NeuropodError and the builtin that fits."""

from neuropod.errors import InvalidArgumentError, ModelError, NeuropodError


class TargetExistsError(InvalidArgumentError, FileExistsError):
    """Something is at the target already, and `overwrite` is False."""


class UnknownArgumentError(InvalidArgumentError, TypeError):
    """An argument that the packager doesn't have, or one that it lacks."""


class PackageWriteError(NeuropodError, OSError):
    """The package could not be written: no space, no permission, no such folder.

    `errno` is the operating system's number, or None.
    """

    code = "unavailable"
    origin = "resource"

    def __init__(self, message: object, number: int | None = None) -> None:
        super().__init__(message)
        self.errno = number


class SelfTestError(ModelError, ValueError):
    """The finished package did not do what its test data says."""
