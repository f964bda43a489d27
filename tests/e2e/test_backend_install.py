"""From nothing to a running TorchScript model, as a user meets it.

A new virtual environment gets Neuropod by an isolated `pip install .`: that build never sees torch. The
environment then sees the torch of the environment that runs the tests, through a .pth file behind its
own packages (installing torch once more would cost several hundred MB and show nothing new). Loading a
TorchScript package then fails for want of a plug-in, and the command that the error prints is run as
printed.
"""

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from addition_programs import PACKAGE, RUN

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


class NewEnvironment:
    """A virtual environment, a home of its own, and a working folder."""

    def __init__(self, root: Path) -> None:
        self.bin = root / "venv" / "bin"
        self.work = root / "work"
        self.work.mkdir()
        subprocess.run(
            [sys.executable, "-m", "venv", "--without-pip", str(root / "venv")], check=True
        )
        hidden = ("PYTHONPATH", "NEUROPOD_BACKEND_PATH", "NEUROPOD_BASE_DIR", "VIRTUAL_ENV")
        self.environment = {k: v for k, v in os.environ.items() if k not in hidden}
        self.environment["PATH"] = f"{self.bin}{os.pathsep}{os.environ['PATH']}"
        self.environment["XDG_DATA_HOME"] = str(root / "data")
        if shutil.which("ccache"):
            self.environment.setdefault("CMAKE_CXX_COMPILER_LAUNCHER", "ccache")

    def install_checkout(self) -> None:
        command = [sys.executable, "-m", "pip", "--python", str(self.bin / "python")]
        options = ["install", "--quiet", "--disable-pip-version-check", str(ROOT)]
        subprocess.run([*command, *options], env=self.environment, check=True)

    def show_torch(self) -> None:
        spec = importlib.util.find_spec("torch")
        assert spec is not None
        assert spec.origin is not None
        outer = Path(spec.origin).parents[1]
        site = sysconfig.get_path("purelib", vars={"base": str(self.bin.parent)})
        Path(site, "torch_of_the_tests.pth").write_text(f"{outer}\n")

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            cwd=self.work,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )

    def python(self, code: str) -> subprocess.CompletedProcess[str]:
        """Runs a file: TorchScript reads the source of what it compiles."""
        (self.work / "program.py").write_text(code)
        return self.run("python", "-W", "ignore", "program.py")


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> NewEnvironment:
    new = NewEnvironment(tmp_path_factory.mktemp("install"))
    new.install_checkout()
    new.show_torch()
    return new


def test_the_command_that_the_error_prints_works_as_printed(environment: NewEnvironment) -> None:
    where = environment.python("import neuropod._native as n; print(n.__file__)")
    assert where.stdout.startswith(str(environment.bin.parent)), where.stderr

    packaged = environment.python(PACKAGE)
    assert packaged.returncode == 0, packaged.stderr

    failed = environment.python(RUN)
    assert failed.returncode != 0
    assert "BackendNotFoundError" in failed.stderr
    assert "'torchscript'" in failed.stderr
    assert "looked in" in failed.stderr
    printed = re.search(r"`(neuropod backends install [^`]+)`", failed.stderr)
    assert printed is not None, failed.stderr
    assert environment.run("neuropod", "run", "addition.neuropod").returncode == 4

    installed = environment.run("bash", "-c", printed[1])
    assert installed.returncode == 0, installed.stderr

    loaded = environment.python(RUN)
    assert loaded.returncode == 0, loaded.stderr
    assert loaded.stdout == "[0.0, 2.0, 4.0]\n"


def test_installing_again_builds_nothing(environment: NewEnvironment) -> None:
    again = environment.run("neuropod", "backends", "install", "torchscript", "--json")
    assert again.returncode == 0, again.stderr
    result = json.loads(again.stdout)
    assert result["built"] is False
    listed = environment.run("neuropod", "backends", "list", "--json")
    usable = [b for b in json.loads(listed.stdout)["backends"] if b["usable"]]
    assert {b["platform"] for b in usable} == {"echo", "torchscript"}
    assert result["directory"] in [b["directory"] for b in usable]
