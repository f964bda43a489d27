"""The core's wheel: library, native module, headers, `echo`, the sources of the framework plug-ins."""

import os
import sys
from pathlib import Path

from wheels.errors import WheelError, run


def build_core_wheel(checkout: Path, build_folder: Path, target: Path) -> Path:
    """Builds `checkout` in `build_folder`, which is kept, and returns the wheel made in `target`.

    The wheel is as the compiler left it: its tag says nothing of the C library it needs.
    """
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("NEUROPOD_BUILD_")
    }
    environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), environment["PATH"]])
    target.mkdir(parents=True, exist_ok=True)
    for earlier in target.glob("neuropod-*.whl"):
        earlier.unlink()
    run(
        [
            *(sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check"),
            *("--no-deps", "--no-build-isolation", "--wheel-dir", target),
            *(f"--config-settings=build-dir={build_folder}", checkout),
        ],
        environment,
    )
    wheels = list(target.glob("neuropod-*.whl"))
    if len(wheels) != 1:
        raise WheelError(f"building {checkout} made {len(wheels)} wheels in {target}, not one")
    return wheels[0]
