"""`neuropod doctor`: each problem, provoked."""

import json
import os
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from processes import done

import neuropod
from neuropod import _native
from neuropod.cli import doctor_machine
from neuropod.cli.doctor_environment import KNOWN_VARIABLES
from neuropod.cli.main import main

REPOSITORY = Path(__file__).parents[3]


@pytest.fixture
def examine(capsys):
    """Runs the command; returns its exit code and the findings by topic (the worst of each)."""

    def run():
        code = main(["doctor", "--json"])
        report = json.loads(capsys.readouterr().out)
        sections = [report[name] for name in ("installation", "machine", "environment")]
        assert report["healthy"] == (code == 0)
        findings = [finding for section in sections for finding in section]
        findings.sort(key=lambda finding: finding["level"] != "ok")
        return code, {finding["topic"]: finding for finding in findings}

    return run


def test_a_healthy_installation_is_0(capsys):
    code = main(["doctor"])
    shown = capsys.readouterr().out
    assert code == 0, shown
    for text in (
        neuropod.__version__,
        f"ABI {_native.ABI_VERSION}",
        _native.library_path(),
        "nothing prevents use",
        sys.executable,
    ):
        assert text in shown
    assert "PROBLEM" not in shown


def test_every_note_and_problem_has_a_remedy_and_nothing_else_does(examine, monkeypatch):
    monkeypatch.setenv("HOME", "/dev/null/home")
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.setenv("TMPDIR", "/no/such/folder")
    monkeypatch.setenv("PATH", "/no/such/folder")
    monkeypatch.setenv("NEUROPOD_LOG_LEVEL", "LOUD")
    _, findings = examine()
    for topic, finding in findings.items():
        assert (finding["level"] == "ok") == (finding["remedy"] is None), topic


def test_no_framework_is_imported():
    program = (
        "import sys; from neuropod.cli.main import main; main(['doctor']); "
        "print([m for m in ('torch', 'matplotlib', 'PIL') if m in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout
    assert shown.splitlines()[-1] == "[]"


# Each problem.


def test_a_native_module_that_cannot_be_loaded(examine, monkeypatch):
    monkeypatch.setitem(sys.modules, "neuropod._native", None)
    monkeypatch.delattr(neuropod, "_native")
    code, findings = examine()
    assert code == 4
    assert findings["neuropod"]["level"] == "problem"
    assert "can't be loaded" in findings["neuropod"]["text"]
    assert "pip install --force-reinstall neuropod" in findings["neuropod"]["remedy"]


def test_a_library_of_another_version(examine, monkeypatch):
    monkeypatch.setattr(_native, "library_version", lambda: "0.0.1")
    code, findings = examine()
    assert code == 4
    assert "0.0.1" in findings["neuropod"]["text"]


def test_missing_python_packages(examine, monkeypatch):
    version = metadata.version

    def without(name):
        if name in ("numpy", "pillow", "matplotlib"):
            raise metadata.PackageNotFoundError(name)
        return version(name)

    monkeypatch.setattr(metadata, "version", without)
    code, findings = examine()
    assert code == 4
    assert findings["numpy"]["level"] == "problem"
    assert "neuropod[images]" in findings["pillow"]["remedy"]
    assert "neuropod[plots]" in findings["matplotlib"]["remedy"]


def test_no_plug_in_that_runs_a_framework(examine, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    code, findings = examine()
    assert code == 4
    assert findings["plug-ins"]["level"] == "problem"
    assert findings["plug-ins"]["remedy"].startswith("`neuropod backends install ")


def test_no_framework(examine, monkeypatch, tmp_path):
    def absent(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "distribution", absent)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    code, findings = examine()
    assert code == 4
    assert findings["framework"]["level"] == "note"
    assert "pip install" in findings["framework"]["remedy"]
    remedy = findings["plug-ins"]["remedy"]
    assert "pip install" in remedy and "then `neuropod backends install" in remedy


def test_a_plug_in_of_another_abi(examine, monkeypatch, tmp_path):
    (tmp_path / "plugin").mkdir()
    manifest = {
        "manifest_version": 1,
        "platform": "torchscript",
        "framework": "torch",
        "framework_version": "9.9.9",
        "neuropod_abi": "another",
        "library": "lib.so",
        "libraries": [],
        "python_module": "",
        "gpu": False,
    }
    (tmp_path / "plugin" / "backend.json").write_text(json.dumps(manifest))
    monkeypatch.setenv("NEUROPOD_BACKEND_PATH", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "none"))
    code, findings = examine()
    plugin = findings["plug-in"]
    assert code == 4
    assert plugin["level"] == "note"
    assert "another" in plugin["text"]
    assert "neuropod backends install torchscript" in plugin["text"] + (plugin["remedy"] or "")


def test_no_compiler(examine, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    code, findings = examine()
    assert code == 0
    assert "g++" in findings["compilers"]["text"]
    assert "apt-get install" in findings["compilers"]["remedy"]


@pytest.mark.parametrize("call", ["memfd_create", "pidfd_open"])
def test_a_kernel_that_refuses_a_call(examine, monkeypatch, call):
    def refused(*_):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, call, refused)
    code, findings = examine()
    assert code == 0
    assert "Operation not permitted" in findings[call]["text"]
    assert "seccomp" in findings[call]["remedy"]


def test_cgroups(tmp_path):
    own = tmp_path / "proc" / "self" / "cgroup"
    own.parent.mkdir(parents=True)
    assert doctor_machine._cgroup(tmp_path).level == "note"
    own.write_text("4:memory:/docker\n")
    assert "version 1 only" in doctor_machine._cgroup(tmp_path).text
    own.write_text("0::/slice\n")
    assert "isn't writable" in doctor_machine._cgroup(tmp_path).text
    (tmp_path / "sys/fs/cgroup/slice").mkdir(parents=True)
    (tmp_path / "sys/fs/cgroup/slice/cgroup.procs").touch()
    assert doctor_machine._cgroup(tmp_path).level == "ok"


def test_no_shared_memory(tmp_path):
    assert doctor_machine._shared_memory(tmp_path / "shm").level == "note"
    assert doctor_machine._shared_memory(tmp_path).level == "ok"


def test_another_c_library(monkeypatch):
    def unknown(name):
        raise ValueError(name)

    monkeypatch.setattr(os, "confstr", unknown)
    assert doctor_machine._glibc().level == "note"


@pytest.mark.parametrize("folder", ["/no/such/folder", "/dev/null", "/proc"])
def test_no_place_for_temporary_files(examine, monkeypatch, folder):
    monkeypatch.setenv("TMPDIR", folder)
    _, findings = examine()
    assert findings["temporary files"]["level"] == "note"
    assert folder in findings["temporary files"]["text"]
    assert "TMPDIR" in findings["temporary files"]["remedy"]


def test_little_space_for_temporary_files(examine, monkeypatch):
    import shutil

    usage = shutil.disk_usage("/")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=3 << 20))
    _, findings = examine()
    assert "3 MiB left" in findings["temporary files"]["text"]


@pytest.mark.parametrize("home", ["/dev/null/home", "/proc/home"])
def test_a_home_that_is_not_writable(examine, monkeypatch, home):
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.setenv("HOME", home)
    _, findings = examine()
    assert findings["data folder"]["level"] == "note"
    assert home in findings["data folder"]["text"]
    assert "XDG_DATA_HOME" in findings["data folder"]["remedy"]


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("NEUROPOD_BACKENDS_PATH", "/x", "did you mean 'NEUROPOD_BACKEND_PATH'"),
        ("NEUROPOD_BACKEND_PATH", "/no/such/place", "/no/such/place: no such folder"),
        ("NEUROPOD_BASE_DIR", "/no/such/place", "/no/such/place: no such folder"),
        ("NEUROPOD_LOG_LEVEL", "LOUD", "isn't known"),
        ("NEUROPOD_LOG_FORMAT", "xml", "isn't known"),
    ],
)
def test_a_variable_that_cannot_be_meant(examine, monkeypatch, name, value, text):
    monkeypatch.setenv(name, value)
    _, findings = examine()
    assert findings[name]["level"] == "note"
    assert text in findings[name]["text"]


def test_variables_that_are_set_are_listed(examine, monkeypatch, tmp_path):
    monkeypatch.setenv("NEUROPOD_LOG_LEVEL", "ERROR")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("LD_LIBRARY_PATH", "/opt/lib")
    _, findings = examine()
    for name, value in (
        ("NEUROPOD_LOG_LEVEL", "ERROR"),
        ("XDG_DATA_HOME", str(tmp_path)),
        ("LD_LIBRARY_PATH", "/opt/lib"),
    ):
        assert findings[name] == {"topic": name, "level": "ok", "text": value, "remedy": None}


def test_a_locale_that_is_not_utf8():
    ended = done("doctor", environment={"PYTHONIOENCODING": "latin-1"})
    assert re.search("note +locale", ended.stdout)
    assert "LC_ALL=C.UTF-8" in ended.stdout


def test_it_knows_the_variables_that_the_documentation_lists():
    page = (REPOSITORY / "docs" / "environment.md").read_text()
    assert set(KNOWN_VARIABLES) == set(re.findall(r"^\| `([A-Z_]+)`", page, re.MULTILINE))
