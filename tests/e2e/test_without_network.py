"""Loading, running, testing and measuring models opens no network socket.

Shown in two ways at once. The suites of the Python package and of the command line run where there is
no network: in a network namespace of their own, if this machine lets one be made. And in every process
of theirs a library is preloaded (network_watch.c) that refuses sockets of any network and writes down
who asked for one; that needs no permission, and tells an attempt that is made and survived too.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from addition_programs import PACKAGE_WITH_TEST_DATA

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
# All of the Python package, but what installs frameworks.
SUITES = ("python/tests", "--ignore=python/tests/backend_installer", "tests/golden")

COMMANDS = """
set -e
neuropod info addition.neuropod
neuropod info --json addition.neuropod
neuropod run addition.neuropod -i x.npz
neuropod test addition.neuropod
neuropod bench addition.neuropod
neuropod backends list
python -c '
import numpy as np
from neuropod import load_neuropod
with load_neuropod("addition.neuropod") as model:
    x = np.ones(3, "float32")
    print(model.infer({"x": x, "y": x})["out"].tolist())
'
"""

PACKAGE = (
    PACKAGE_WITH_TEST_DATA
    + """
import numpy as np
x = np.arange(3, dtype="float32")
np.savez("x.npz", x=x, y=x)
"""
)


def isolation() -> list[str]:
    """What runs a command in a network namespace of its own; empty where none may be made."""
    for prefix in (["unshare", "--net"], ["unshare", "--user", "--map-root-user", "--net"]):
        if shutil.which("unshare"):
            tried = subprocess.run([*prefix, "true"], capture_output=True, check=False)
            if tried.returncode == 0:
                return prefix
    return []


class Watched:
    """Runs commands without a network, and knows who asked for one."""

    def __init__(self, folder: Path) -> None:
        self.log = folder / "network.log"
        library = folder / "network_watch.so"
        source = Path(__file__).with_name("network_watch.c")
        command = ["gcc", "-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror"]
        subprocess.run([*command, "-o", str(library), str(source), "-ldl"], check=True)
        self.prefix = isolation()
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        self.environment = {
            **os.environ,
            "PATH": path,
            "LD_PRELOAD": str(library),
            "NETWORK_WATCH_LOG": str(self.log),
        }

    def run(self, *command: str, folder: Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self.prefix, *command],
            cwd=folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )

    def attempts(self) -> str:
        return self.log.read_text() if self.log.exists() else ""


@pytest.fixture
def watched(tmp_path: Path) -> Watched:
    return Watched(tmp_path)


@pytest.mark.parametrize(
    "program",
    [
        "import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM)",
        "import socket; socket.create_connection(('host.invalid', 80))",
    ],
)
def test_an_attempt_is_noticed_and_fails(watched: Watched, tmp_path: Path, program: str) -> None:
    done = watched.run("python", "-c", program, folder=tmp_path)
    assert done.returncode != 0
    assert f"by python -c {program}" in watched.attempts()


def test_every_command_works_and_opens_no_network_socket(watched: Watched, tmp_path: Path) -> None:
    (tmp_path / "package.py").write_text(PACKAGE)
    packaged = watched.run("python", "-W", "ignore", "package.py", folder=tmp_path)
    assert packaged.returncode == 0, packaged.stderr
    done = watched.run("bash", "-c", COMMANDS, folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("[2.0, 2.0, 2.0]\n")
    assert watched.attempts() == ""


def test_the_suite_passes_and_opens_no_network_socket(watched: Watched, tmp_path: Path) -> None:
    options = ["-q", "-p", "no:cacheprovider", f"--basetemp={tmp_path / 'suite'}"]
    done = watched.run("python", "-m", "pytest", *options, *SUITES, folder=ROOT)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert " passed" in done.stdout
    assert watched.attempts() == ""
