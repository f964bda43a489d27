"""`.venv/`: made with the interpreter that runs the set-up, kept while it fits."""

import shutil
import subprocess
import sys

from setup_environment.paths import VENV, VENV_PYTHON
from setup_environment.progress import SetupError, run_logged, say

_SUPPORTED = ((3, 11), (3, 12), (3, 13))


def check_interpreter() -> None:
    """Refuses a Python that Neuropod doesn't support (too old a one never gets here)."""
    if sys.version_info[:2] not in _SUPPORTED:
        raise SetupError(
            f"Python {_own_version()} at {sys.executable} is not supported: Neuropod needs 3.11, "
            "3.12 or 3.13 (PYTHON=python3.12 picks another)"
        )


def rebuild_reason(python_was_chosen: bool) -> str | None:
    """Why `.venv/` has to be made (anew), or None where the present one serves.

    A sound environment of another supported Python is kept unless `python_was_chosen`: `make test`
    after `make setup PYTHON=…` stays with what was set up.
    """
    if not VENV.exists():
        return "there is none yet"
    if not (VENV / "pyvenv.cfg").is_file():
        raise SetupError(f"{VENV.name}/ is no virtual environment; move it away and run this again")
    version = _venv_version()
    if version is None:
        return "the present one's Python no longer runs"
    if version == _own_version():
        return None
    supported = tuple(int(part) for part in version.split(".")) in _SUPPORTED
    if supported and not python_was_chosen:
        return None
    return f"the present one has Python {version}, {_own_version()} is asked for"


def create(reason: str | None) -> None:
    """Makes `.venv/` if there is a reason to; an older one is removed first."""
    if reason is None:
        say(f"{VENV.name}/ has Python {_venv_version()}")
        return
    say(f"making {VENV.name}/ with Python {_own_version()} ({reason})")
    if VENV.exists():
        shutil.rmtree(VENV)
    try:
        run_logged("python -m venv", [_base_python(), "-m", "venv", VENV], "venv.log")
    except SetupError:
        shutil.rmtree(VENV, ignore_errors=True)
        raise


def _base_python() -> str:
    """The interpreter itself: inside an activated environment, the one it was made from."""
    return str(getattr(sys, "_base_executable", sys.executable))


def _own_version() -> str:
    return f"{sys.version_info[0]}.{sys.version_info[1]}"


def _venv_version() -> str | None:
    program = "import pip, sys; print('%d.%d' % sys.version_info[:2])"
    try:
        answer = subprocess.run(
            [VENV_PYTHON, "-I", "-c", program], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return answer.stdout.strip()
