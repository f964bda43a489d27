"""The decorators of packagers, by the names that existing code imports."""

from collections.abc import Callable, Iterable
from typing import Any

from neuropod.packaging.packager import packager

__all__ = ["expand_default_kwargs", "packager", "set_packager_docstring"]


def set_packager_docstring(function: Callable[..., Any]) -> Callable[..., Any]:
    """Does nothing: `packager` documents what it makes."""
    return function


def expand_default_kwargs(
    dependencies: Iterable[Callable[..., Any]],
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Makes `neuropod_default_args` of a function that hands its arguments on to `dependencies`."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        defaults: dict[str, Any] = {}
        for dependency in dependencies:
            defaults.update(getattr(dependency, "neuropod_default_args", {}))
        defaults.update(getattr(function, "neuropod_default_args", {}))
        function.neuropod_default_args = defaults  # type: ignore[attr-defined]
        return function

    return decorate
