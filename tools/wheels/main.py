"""`make wheels`: the core's wheel and one per plug-in, into `dist/`."""

import argparse
import sys
import time
from pathlib import Path

from neuropod.backend_installer import shipped_platforms
from neuropod.errors import NeuropodError
from wheels.core import build_core_wheel
from wheels.errors import WheelError
from wheels.plugin import build_plugin_wheel
from wheels.repair import OWN_LIBRARIES, repair

ROOT = Path(__file__).resolve().parents[2]
WORK = ROOT / "build" / "wheels"


def main() -> int:
    """Parses the command line, makes the wheels, and says what went wrong in one message."""
    arguments = _parser().parse_args()
    try:
        if arguments.core:
            _make_core_wheel(arguments.to)
        for platform in arguments.platforms:
            _make_plugin_wheel(platform, arguments.to)
    except (WheelError, NeuropodError) as error:
        print(f"make wheels: {error}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="build_wheels.py", description=__doc__)
    parser.add_argument(
        "--to", type=Path, default=ROOT / "dist", metavar="DIR", help="where wheels go (dist/)"
    )
    parser.add_argument(
        "--platforms",
        nargs="*",
        default=shipped_platforms(),
        metavar="PLATFORM",
        help="plug-ins to pack (all whose sources are shipped)",
    )
    parser.add_argument(
        "--core",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="make the core's wheel too",
    )
    return parser


def _make_core_wheel(target: Path) -> None:
    started = time.monotonic()
    version = f"{sys.version_info[0]}{sys.version_info[1]}"
    print("building the core's wheel …", flush=True)
    raw = build_core_wheel(ROOT, WORK / f"core-cp{version}", WORK / "raw")
    _announce(repair(raw, OWN_LIBRARIES, target), started)


def _make_plugin_wheel(platform: str, target: Path) -> None:
    started = time.monotonic()
    print(f"making the wheel of the {platform} plug-in …", flush=True)
    work = WORK / platform
    packed = build_plugin_wheel(platform, ROOT / "LICENSE", work, work / "raw")
    _announce(repair(packed.path, (*OWN_LIBRARIES, *packed.framework_libraries), target), started)


def _announce(wheel: Path, started: float) -> None:
    seconds = time.monotonic() - started
    size = wheel.stat().st_size / 1e6
    print(f"{wheel} ({size:.1f} MB, {seconds:.0f} s)", flush=True)
