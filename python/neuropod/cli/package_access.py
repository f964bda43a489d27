"""Errors of a command's package, told from errors of its other arguments."""

from collections.abc import Iterator
from contextlib import contextmanager

from neuropod.errors import CorruptPackageError, InvalidArgumentError, NotFoundError


class PackageUnreadableError(CorruptPackageError):
    """There is no package at the path, or it can't be opened."""


@contextmanager
def reading_package() -> Iterator[None]:
    """Whatever isn't found or can't be read in here is the package."""
    try:
        yield
    except NotFoundError as error:
        raise PackageUnreadableError(error.message) from error
    except InvalidArgumentError:
        raise
    except OSError as error:
        raise PackageUnreadableError(str(error)) from error
