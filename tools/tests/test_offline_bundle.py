"""The bundle that a set-up without a network takes everything from."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import offline_bundle as make_offline_bundle
import pytest
from setup_environment import offline_bundle, progress, python_packages, stamps, system_packages
from setup_environment.progress import SetupError

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def bundle(tmp_path):
    """A bundle of one wheel and one Debian package."""
    folder = tmp_path / "bundle"
    (folder / "wheels").mkdir(parents=True)
    (folder / "debian").mkdir()
    info = "tiny_offline-1.0.dist-info"
    with zipfile.ZipFile(folder / "wheels" / "tiny_offline-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("tiny_offline.py", "answer = 42\n")
        wheel.writestr(
            f"{info}/METADATA", "Metadata-Version: 2.1\nName: tiny-offline\nVersion: 1.0\n"
        )
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    make_debian_package(folder / "debian", "neuropod-offline-test")
    offline_bundle.index_debian_packages(folder / "debian")
    offline_bundle.write_manifest(folder)
    return folder


def make_debian_package(folder, name):
    root = folder.parent / name
    (root / "DEBIAN").mkdir(parents=True)
    (root / "DEBIAN" / "control").write_text(
        f"Package: {name}\nVersion: 1.0\nArchitecture: all\nMaintainer: nobody <nobody@invalid>\n"
        "Description: made by a test\n"
    )
    command = ["dpkg-deb", "--build", "--root-owner-group", str(root), str(folder)]
    subprocess.run(command, check=True, capture_output=True)
    for path in (root / "DEBIAN" / "control", root / "DEBIAN", root):
        path.unlink() if path.is_file() else path.rmdir()


def test_a_whole_bundle_for_this_machine_is_taken(bundle):
    opened = offline_bundle.open_bundle(bundle)
    assert opened.wheels == bundle / "wheels"
    assert opened.debian == bundle / "debian"


def test_what_is_no_bundle_names_the_command_that_makes_one(tmp_path):
    with pytest.raises(SetupError, match=r"no bundle: manifest.json .*`make offline-bundle`"):
        offline_bundle.open_bundle(tmp_path)
    (tmp_path / "manifest.json").write_text("{")
    with pytest.raises(SetupError, match=r"manifest.json is no valid JSON"):
        offline_bundle.open_bundle(tmp_path)
    (tmp_path / "manifest.json").write_text('{"format": 99}')
    with pytest.raises(SetupError, match="isn't of format 1"):
        offline_bundle.open_bundle(tmp_path)


def test_a_changed_and_a_missing_file_are_named(bundle):
    (package,) = (bundle / "debian").glob("*.deb")
    content = package.read_bytes()
    package.write_bytes(content[:-1] + b"x")
    with pytest.raises(SetupError, match=rf"{package.name} isn't the file that its manifest lists"):
        offline_bundle.open_bundle(bundle)
    package.unlink()
    with pytest.raises(SetupError, match=rf"lacks debian/{package.name}"):
        offline_bundle.open_bundle(bundle)


@pytest.mark.parametrize("key", ["python", "architecture", "system"])
def test_a_bundle_for_another_machine_is_refused(bundle, key):
    path = bundle / "manifest.json"
    manifest = json.loads(path.read_text())
    path.write_text(json.dumps({**manifest, key: "another"}))
    with pytest.raises(SetupError, match=f"made for {key} another, this is {manifest[key]}"):
        offline_bundle.open_bundle(bundle)


def test_wheels_come_from_the_bundle_alone(bundle, tmp_path, monkeypatch):
    """Whatever else pip is configured to ask."""
    monkeypatch.setenv("PIP_INDEX_URL", "http://index.invalid/simple")
    monkeypatch.setenv("PIP_FIND_LINKS", "/nowhere")
    environment = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
    requirements = tmp_path / "requirements"
    requirements.mkdir()
    for name in (*python_packages.RESOLVED, python_packages.WITHOUT_DEPENDENCIES):
        (requirements / name).write_text("tiny-offline==1.0\n")
    for module in (stamps, progress):
        monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(stamps, "STAMPS", tmp_path / "stamps")
    monkeypatch.setattr(progress, "LOGS", tmp_path / "logs")
    monkeypatch.setattr(python_packages, "REQUIREMENTS", requirements)
    monkeypatch.setattr(python_packages, "VENV_PYTHON", environment / "bin" / "python")

    python_packages.install(bundle / "wheels")

    program = "import tiny_offline; print(tiny_offline.answer)"
    command = [str(environment / "bin" / "python"), "-c", program]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "42\n"
    assert "index.invalid" not in (tmp_path / "logs" / "pip.log").read_text()


def test_debian_packages_come_from_the_bundle_alone(bundle, monkeypatch, tmp_path):
    """apt-get finds the package by the bundle's index; a simulation, so that nothing is installed."""
    commands = []

    def simulate(title, command, log_name, environment=None):
        words = [str(word) for word in command]
        if words[-1] != "update":
            words.insert(words.index("install") + 1, "--simulate")
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        commands.append(done.stdout)

    monkeypatch.setattr(system_packages, "run_logged", simulate)
    monkeypatch.setattr(system_packages, "_root_prefix", list)
    system_packages.install(["neuropod-offline-test"], bundle / "debian")
    updated, installed = commands
    assert "Inst neuropod-offline-test (1.0" in installed
    assert "file:" in updated
    assert "http" not in updated


def test_debian_packages_are_listed_with_what_they_depend_on():
    names = system_packages.with_dependencies()
    assert {"cmake", "g++", "cmake-data"} <= set(names)
    assert "dpkg" not in names


def test_the_folder_says_what_it_is_for():
    machine = offline_bundle.describe_machine()
    name = make_offline_bundle.default_name()
    assert name.endswith(f"-{machine['architecture']}-python{machine['python']}")
    assert os.sep not in name


def test_make_passes_the_folder_on():
    command = ["make", "--dry-run", "setup", "OFFLINE_DIR=a folder"]
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert '--offline "a folder"' in printed
