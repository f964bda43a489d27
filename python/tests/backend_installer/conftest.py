import json
import subprocess
import sys

import pytest

from neuropod.backend_installer import sources

PLUGIN = {
    "platform": "tiny",
    "distribution": "tiny-framework",
    "python_module": "tiny_framework",
    "minimum_version": "2.0",
    "minimum_version_reason": "its older libraries have another ABI",
}
CMAKE = """
cmake_minimum_required(VERSION 3.25)
project(tiny LANGUAGES CXX)
find_package(Neuropod CONFIG REQUIRED)
neuropod_add_backend(tiny_plugin PLATFORM tiny FRAMEWORK tiny FRAMEWORK_VERSION ${FRAMEWORK_VERSION}
  PYTHON_MODULE tiny_framework SOURCES tiny.cc LIBRARIES ${FRAMEWORK_MODULE_DIR}/libtiny.so.1)
"""


def make_library(path, version, needs=(), old_abi=False):
    """A real shared library that tells its version, and passes for one of the new C++ ABI."""
    abi = "" if old_abi else "int _ZN4tiny4nameB5cxx11Ev;"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    command = ["gcc", "-shared", "-fPIC", "-x", "c", "-", "-x", "none", "-o", str(path)]
    command += [f"-Wl,-soname,{path.name}", "-Wl,--no-as-needed", *map(str, needs)]
    subprocess.run(
        command, input=f'{abi} const char* tiny_version = "{version}";', text=True, check=True
    )


class TinyPlugin:
    """A shipped plug-in and its framework: real folders, a real compiler, a small source."""

    def __init__(self, root):
        self.sources = root / "shipped" / "tiny"
        self.site = root / "site"
        self.sources.mkdir(parents=True)
        self.describe()
        (self.sources / "CMakeLists.txt").write_text(CMAKE)
        self.write_source("int tiny() { return 1; }")
        self.install_framework("2.13.0+cpu")

    def describe(self, **changes):
        (self.sources / "plugin.json").write_text(json.dumps({**PLUGIN, **changes}))

    def write_source(self, code):
        (self.sources / "tiny.cc").write_text(code + "\n")

    def install_framework(self, version):
        module = self.site / "tiny_framework"
        module.mkdir(parents=True, exist_ok=True)
        (module / "__init__.py").write_text("raise SystemExit('must not be imported')\n")
        make_library(module / "libtiny.so.1", version)
        for old in self.site.glob("*.dist-info"):
            (old / "METADATA").unlink()
            (old / "RECORD").unlink()
            old.rmdir()
        info = self.site / f"tiny_framework-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: tiny-framework\nVersion: {version}\n"
        )
        (info / "RECORD").write_text(
            f"tiny_framework/__init__.py,sha256=AAAA,1\n"
            f"tiny_framework/libtiny.so.1,sha256={version.replace('.', '')},1\n"
        )


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    plugin = TinyPlugin(tmp_path)
    monkeypatch.setattr(sources, "_sources_folder", lambda prefix: plugin.sources.parent)
    monkeypatch.syspath_prepend(plugin.site)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    yield plugin
    sys.modules.pop("tiny_framework", None)


@pytest.fixture
def folder(tmp_path):
    """The user's folder of plug-ins."""
    return tmp_path / "data" / "neuropod" / "backends"
