"""Debian packages of `requirements/debian.txt`: finds and installs the missing ones."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

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


def with_dependencies() -> list[str]:
    """The listed packages and all they depend on, but for what every Debian has.

    Whatever is installed here doesn't count, nor which Python runs: another machine may differ.
    """
    command = ["apt-get", "install", "--simulate", "--no-install-recommends"]
    command += ["-o", "Dir::State::status=/dev/null", *_all_listed_packages()]
    try:
        simulated = _output(command)
    except SetupError:  # no package lists yet, or old ones
        _output([*(_root_prefix() or []), "apt-get", "update"])
        simulated = _output(command)
    names = [line.split()[1] for line in simulated.splitlines() if line.startswith("Inst ")]
    described = _output(["apt-cache", "show", "--no-all-versions", *names])
    essential = {
        entry.split("\n", 1)[0].removeprefix("Package: ")
        for entry in described.split("\n\n")
        if "\nEssential: yes" in entry or "\nPriority: required" in entry
    }
    return [name for name in names if name not in essential]


def _output(command: list[str]) -> str:
    environment = {**os.environ, "LC_ALL": "C.UTF-8"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode != 0:
        raise SetupError(f"{' '.join(command[:2])} failed: {done.stderr.strip()}")
    return done.stdout


def install(missing: Sequence[str], repository: Path | None = None) -> None:
    """Installs `missing` through apt-get, as root or by sudo; without either, names them.

    repository: a folder of packages with their index, to take everything from.
    """
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
    if repository is not None:
        _install_from(repository, missing, [*apt_get, *lock])
        return
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


def _install_from(repository: Path, missing: Sequence[str], apt_get: list[str]) -> None:
    """With package lists of its own, so that those of the machine stay as they are."""
    with tempfile.TemporaryDirectory(prefix="neuropod-apt-") as folder:
        Path(folder).chmod(0o755)  # apt reads as a user of its own
        lists = Path(folder, "lists")
        (lists / "partial").mkdir(parents=True)
        source = Path(folder, "sources.list")
        source.write_text(f"deb [trusted=yes] file:{repository.absolute()} ./\n")
        options = ["-o", f"Dir::Etc::SourceList={source}", "-o", "Dir::Etc::SourceParts=-"]
        options += ["-o", f"Dir::State::Lists={lists}", "-o", f"Dir::Cache={folder}"]
        options += ["-o", "APT::Sandbox::User=root"]
        run_logged("apt-get update", [*apt_get, *options, "update"], "apt-update.log")
        install = ["install", "--yes", "--no-install-recommends", *missing]
        run_logged("apt-get install", [*apt_get, *options, *install], "apt-install.log")


def _all_listed_packages() -> list[str]:
    lines = (REQUIREMENTS / "debian.txt").read_text().splitlines()
    return [name for line in lines if (name := line.partition("#")[0].strip())]


def _listed_packages() -> list[str]:
    """Those that this interpreter needs."""
    packages = _all_listed_packages()
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
