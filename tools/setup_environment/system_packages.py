"""Debian packages of `requirements/debian.txt`: finds and installs the missing ones."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence

from setup_environment.paths import REQUIREMENTS
from setup_environment.progress import SetupError, run_logged, say


def missing_packages() -> list[str]:
    """The listed packages that dpkg doesn't know as installed; empty where there is no dpkg."""
    if shutil.which("dpkg-query") is None:
        return []
    wanted = _listed_packages()
    answer = subprocess.run(
        ["dpkg-query", "--show", "--showformat=${Package}\t${Status}\n", *wanted],
        capture_output=True,
        text=True,
        check=False,  # it fails when any package is unknown, which is an answer too
    )
    installed = {
        line.split("\t")[0]
        for line in answer.stdout.splitlines()
        if line.endswith("\tinstall ok installed")
    }
    return [package for package in wanted if package not in installed]


def install(missing: Sequence[str]) -> None:
    """Installs `missing` through apt-get, as root or by sudo; without either, names them."""
    if not missing:
        if shutil.which("dpkg-query") is None:
            say("no dpkg here: taking it that what requirements/debian.txt lists is installed")
        else:
            say("all installed")
        return
    prefix = _root_prefix()
    if prefix is None:
        raise SetupError(
            f"{len(missing)} system packages are missing and this user is not root; as root run: "
            f"apt-get install --no-install-recommends {' '.join(missing)}"
        )
    say(f"installing {' '.join(missing)}")
    # sudo drops the environment, so the settings travel as arguments of env.
    apt_get = [*prefix, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get"]
    lock = ["-o", "DPkg::Lock::Timeout=600"]
    try:
        run_logged("apt-get update", [*apt_get, *lock, "update"], "apt-update.log")
    except SetupError as error:
        # One unreachable extra source must not stop what the others can serve.
        say(f"going on with the package lists at hand: {error}")
    run_logged(
        "apt-get install",
        [*apt_get, *lock, "install", "--yes", "--no-install-recommends", *missing],
        "apt-install.log",
    )


def _listed_packages() -> list[str]:
    lines = (REQUIREMENTS / "debian.txt").read_text().splitlines()
    packages = [name for line in lines if (name := line.partition("#")[0].strip())]
    if sys.base_prefix != "/usr":
        packages = [name for name in packages if not name.startswith("python3-")]
    return packages


def _root_prefix() -> list[str] | None:
    """The words that make a command run as root, or None where that's not to be had."""
    if os.geteuid() == 0:
        return []
    if shutil.which("sudo") is None:
        return None
    passwordless = subprocess.run(["sudo", "-n", "true"], capture_output=True, check=False)
    if passwordless.returncode == 0:
        return ["sudo", "-n"]
    if not sys.stdin.isatty():
        return None
    say("sudo asks for your password, to install system packages")
    return ["sudo"] if subprocess.run(["sudo", "-v"], check=False).returncode == 0 else None
