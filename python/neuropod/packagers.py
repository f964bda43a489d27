"""Packagers of all frameworks, by name: `from neuropod.packagers import create_torchscript_neuropod`.

They are found through the entry-point group `neuropod.packagers`: a distribution that registers
`matrix = "my_module:create_matrix_neuropod"` adds `neuropod.packagers.create_matrix_neuropod`. A
packager's module is imported when it is first asked for.
"""

from importlib.metadata import EntryPoint, entry_points
from typing import Any

_GROUP = "neuropod.packagers"


def _packagers() -> dict[str, EntryPoint]:
    return {f"create_{point.name}_neuropod": point for point in entry_points(group=_GROUP)}


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    packagers = _packagers()
    if name not in packagers:
        raise AttributeError(
            f"neuropod.packagers has no {name!r}; installed: {', '.join(sorted(packagers)) or 'none'}"
        )
    packager = packagers[name].load()
    globals()[name] = packager
    return packager


def __dir__() -> list[str]:
    return sorted([*globals(), *_packagers()])
