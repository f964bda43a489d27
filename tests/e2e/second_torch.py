"""A second torch: Debian's libtorch, unpacked into a folder of its own, installed nowhere.

bookworm has 1.13, trixie 2.6. apt downloads what is missing on this machine, `dpkg -x` unpacks it; the
result stays in `build/second-torch/`, so that the next run takes no time.
"""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = "libtorch-dev"


def unpacked_libtorch() -> Path:
    """The folder that holds usr/include and usr/lib/<architecture>."""
    place = ROOT / "build" / "second-torch" / _candidate()
    if place.is_dir():
        return place
    place.parent.mkdir(parents=True, exist_ok=True)
    staging = Path(tempfile.mkdtemp(prefix=".unpacking-", dir=place.parent))
    try:
        packages = staging / "packages"
        packages.mkdir()
        packages.chmod(0o777)  # apt downloads as a user of its own
        _download(packages)
        for package in sorted(packages.glob("*.deb")):
            _run(["dpkg", "-x", str(package), str(staging / "prefix")], staging)
        (staging / "prefix").rename(place)
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return place


def _download(folder: Path) -> None:
    """Into `folder`; package lists that name what is gone from the mirror are fetched anew."""
    command = ["apt-get", "download", "-q"]
    try:
        _run([*command, *_missing_packages()], folder)
    except AssertionError:
        _run(["apt-get", "update"], ROOT)
        _run([*command, *_missing_packages()], folder)


def _candidate() -> str:
    """`libtorch-dev-<version>`; asks for package lists if there are none yet."""
    version = _policy()
    if version is None:
        _run(["apt-get", "update"], ROOT)
        version = _policy()
    assert version is not None, f"apt knows no {PACKAGE}"
    return f"{PACKAGE}-{version.replace(':', '_')}"


def _policy() -> str | None:
    for line in _run(["apt-cache", "policy", PACKAGE], ROOT).splitlines():
        key, _, value = line.strip().partition(": ")
        if key == "Candidate" and value != "(none)":
            return value
    return None


def _missing_packages() -> list[str]:
    """The package and those of its dependencies that aren't installed."""
    simulated = _run(["apt-get", "install", "-s", "--no-install-recommends", PACKAGE], ROOT)
    return [line.split()[1] for line in simulated.splitlines() if line.startswith("Inst ")]


def _run(command: list[str], folder: Path) -> str:
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{' '.join(command[:3])} failed:\n{done.stdout}\n{done.stderr}"
    return done.stdout
