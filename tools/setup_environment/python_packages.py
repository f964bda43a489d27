"""Python packages of `requirements/*.txt`, through pip with whatever settings it has.

No index or link is passed: pip's own configuration, environment variables and proxies decide where
packages come from. From an offline bundle none of these count: only its wheels do.
"""

import os
from pathlib import Path

from setup_environment import stamps, torch_wheel
from setup_environment.paths import REQUIREMENTS, VENV_PYTHON
from setup_environment.progress import run_logged, say

_STAMP = "python-packages"
RESOLVED = ("build.txt", "frameworks.txt", "dev.txt")
WITHOUT_DEPENDENCIES = "models.txt"
_PIP_OPTIONS = ("--disable-pip-version-check", "--progress-bar=off", "--no-input")


def is_due() -> bool:
    """Whether the requirement files differ from what the environment was made from."""
    return not stamps.matches(_STAMP, _fingerprint())


def install(wheels: Path | None = None) -> None:
    """Installs everything; says the size of a CUDA build of torch before it's downloaded.

    wheels: a folder that everything is taken from, without any network.
    """
    stamps.clear(_STAMP)
    if wheels is None:
        torch_wheel.announce_size(REQUIREMENTS / "frameworks.txt")
    resolved = [f"--requirement={REQUIREMENTS / name}" for name in RESOLVED]
    _pip("pip install", resolved, "pip.log", wheels)
    models = ["--no-deps", f"--requirement={REQUIREMENTS / WITHOUT_DEPENDENCIES}"]
    _pip("pip install (models)", models, "pip-models.log", wheels)
    stamps.write(_STAMP, _fingerprint())


def _pip(title: str, arguments: list[str], log_name: str, wheels: Path | None) -> None:
    say(f"{title}: {' '.join(Path(word).name for word in arguments)}")
    command: list[str | Path] = [VENV_PYTHON, "-m", "pip"]
    environment = {}
    if wheels is not None:
        command += ["--isolated"]
        arguments = ["--no-index", f"--find-links={wheels}", *arguments]
        environment["PIP_CONFIG_FILE"] = os.devnull
    run_logged(title, [*command, "install", *_PIP_OPTIONS, *arguments], log_name, environment)


def _fingerprint() -> str:
    names = (*RESOLVED, WITHOUT_DEPENDENCIES)
    return stamps.fingerprint(REQUIREMENTS / name for name in names)
