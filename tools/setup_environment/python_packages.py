"""Python packages of `requirements/*.txt`, through pip with whatever settings it has.

No index or link is ever passed: pip's own configuration, environment variables, proxies and
offline mode decide where packages come from.
"""

from pathlib import Path

from setup_environment import stamps, torch_wheel
from setup_environment.paths import REQUIREMENTS, VENV_PYTHON
from setup_environment.progress import run_logged, say

_STAMP = "python-packages"
_RESOLVED = ("build.txt", "frameworks.txt", "dev.txt")
_WITHOUT_DEPENDENCIES = "models.txt"
_PIP_OPTIONS = ("--disable-pip-version-check", "--progress-bar=off", "--no-input")


def is_due() -> bool:
    """Whether the requirement files differ from what the environment was made from."""
    return not stamps.matches(_STAMP, _fingerprint())


def install() -> None:
    """Installs everything; says the size of a CUDA build of torch before it's downloaded."""
    stamps.clear(_STAMP)
    torch_wheel.announce_size(REQUIREMENTS / "frameworks.txt")
    _pip("pip install", [f"--requirement={REQUIREMENTS / name}" for name in _RESOLVED], "pip.log")
    _pip(
        "pip install (models)",
        ["--no-deps", f"--requirement={REQUIREMENTS / _WITHOUT_DEPENDENCIES}"],
        "pip-models.log",
    )
    stamps.write(_STAMP, _fingerprint())


def _pip(title: str, arguments: list[str], log_name: str) -> None:
    say(f"{title}: {' '.join(Path(word).name for word in arguments)}")
    run_logged(title, [VENV_PYTHON, "-m", "pip", "install", *_PIP_OPTIONS, *arguments], log_name)


def _fingerprint() -> str:
    names = (*_RESOLVED, _WITHOUT_DEPENDENCIES)
    return stamps.fingerprint(REQUIREMENTS / name for name in names)
