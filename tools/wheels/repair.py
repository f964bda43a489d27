"""auditwheel: which systems a wheel runs on."""

import os
import shutil
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from wheels.errors import WheelError, run

# Found beside the native module, or by its name because that has loaded it.
OWN_LIBRARIES: Final = ("libneuropod.so.*",)


def repair(wheel: Path, foreign_libraries: Sequence[str], target: Path) -> Path:
    """Moves the wheel to `target`, its tag saying the C library it needs ("manylinux_2_34_x86_64").

    Libraries outside the wheel that not every system has would be copied into it; none of ours needs
    one but `foreign_libraries` (file names, patterns allowed), which stay outside. libneuropod must keep
    its name: a renamed copy would be a second library with a registry of its own. WheelError if a
    library was renamed or copied all the same.
    """
    folder = wheel.parent / "repaired"
    shutil.rmtree(folder, ignore_errors=True)
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    excluded = [word for library in foreign_libraries for word in ("--exclude", library)]
    run(
        [sys.executable, "-m", "auditwheel", "repair", *excluded, "--wheel-dir", folder, wheel],
        {**os.environ, "PATH": path},
    )
    (repaired,) = folder.glob("*.whl")
    added = _libraries(repaired) - _libraries(wheel)
    if added:
        raise WheelError(f"auditwheel put {', '.join(sorted(added))} into {repaired.name}")
    target.mkdir(parents=True, exist_ok=True)
    final = target / repaired.name
    repaired.replace(final)
    return final


def _libraries(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if ".so" in Path(name).suffixes}
