"""What the tests of an installed Neuropod share: where the build is, and running commands."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
BUILD = Path(os.environ.get("NEUROPOD_BUILD_DIR", ROOT / "build" / "release"))
EXAMPLES = ROOT / "examples"

WARNINGS = ("-Wall", "-Wextra", "-Wpedantic", "-Werror")


def run(
    command: Sequence[str | Path], *, env: dict[str, str] | None = None, cwd: Path | None = None
) -> str:
    """Standard output of a command that must succeed."""
    done = subprocess.run(
        [str(part) for part in command],
        capture_output=True,
        text=True,
        env=None if env is None else os.environ | env,
        cwd=cwd,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def check_output_of_example(program: Path) -> None:
    """The C++ example that makes every call once runs to its end."""
    env = {"NEUROPOD_BACKEND_PATH": "", "XDG_DATA_HOME": "/nowhere"}
    assert run([program, EXAMPLES / "cpp" / "models" / "addition"], env=env) == "ok\n"


def configure(source: Path, build: Path, *options: str) -> None:
    """Configures a project; its compiler is called as the set-up calls it, so that ccache serves."""
    compiler = [] if "CXX" in os.environ else ["-DCMAKE_CXX_COMPILER=g++"]
    run(["cmake", "-S", source, "-B", build, "-G", "Ninja", *compiler, *options])
