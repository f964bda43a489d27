"""Says what a set-up takes before it takes it."""

import shutil
from collections.abc import Sequence

from setup_environment.paths import ROOT
from setup_environment.progress import SetupError, say

# Measured with the CPU build of torch on two cores.
_PACKAGES_GB, _PACKAGES_MINUTES = 1.9, 2.0
_BUILD_GB, _BUILD_MINUTES = 0.6, 5.0
_SYSTEM_GB_PER_PACKAGE, _SYSTEM_MINUTES = 0.04, 1.5
# Below this share of the estimate a set-up can't end well; between, it may.
_REFUSE_BELOW = 0.7


def announce(missing: Sequence[str], packages_due: bool, build_due: bool) -> None:
    """Prints disk and time needed; refuses where the disk clearly doesn't suffice."""
    need_gb = minutes = 0.0
    if missing:
        need_gb += _SYSTEM_GB_PER_PACKAGE * len(missing)
        minutes += _SYSTEM_MINUTES
    if packages_due:
        need_gb += _PACKAGES_GB
        minutes += _PACKAGES_MINUTES
    if build_due:
        need_gb += _BUILD_GB
        minutes += _BUILD_MINUTES
    free_gb = shutil.disk_usage(ROOT).free / 1e9
    say(
        f"needs up to {max(0.1, need_gb):.1f} GB of disk ({free_gb:.1f} GB are free) "
        f"and about {max(1.0, minutes):.0f} min on two cores"
    )
    # A full set-up over an older one needs less: only a first one is refused.
    if packages_due and not (ROOT / ".venv").exists() and free_gb < _REFUSE_BELOW * need_gb:
        raise SetupError(
            f"{free_gb:.1f} GB free at the checkout, about {need_gb:.1f} GB needed: "
            "free some space, or put the checkout on a larger disk"
        )


def require_free(need_gb: float, purpose: str) -> None:
    """Refuses to start `purpose` with less than `need_gb` free."""
    free_gb = shutil.disk_usage(ROOT).free / 1e9
    if free_gb < need_gb:
        raise SetupError(f"{purpose} needs {need_gb:.1f} GB of disk, {free_gb:.1f} GB are free")
