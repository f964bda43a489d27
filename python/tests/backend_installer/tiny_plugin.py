"""A shipped plug-in and its framework that are small and real."""

import json
import subprocess
import zipfile

PLUGIN = {
    "platform": "tiny",
    "distribution": "tiny-framework",
    "python_module": "tiny_framework",
    "minimum_version": "2.0",
    "minimum_version_reason": "its older libraries have another ABI",
    "prefix": {
        "header": "tiny/tiny.h",
        "libraries": ["tinybase", "tiny"],
        "minimum_version": "1.5",
        "version_header": "tiny/version.h",
        "version_macro": "TINY_VERSION",
        "abi_library": "tinybase",
        "abi_symbol": "_ZN4tiny.*cxx11",
    },
}
CMAKE = """
cmake_minimum_required(VERSION 3.25)
project(tiny LANGUAGES CXX)
find_package(Neuropod CONFIG REQUIRED)
set(library ${FRAMEWORK_MODULE_DIR}/libtiny.so.1)
if(FRAMEWORK_LIBRARY_DIR)
  set(library ${FRAMEWORK_LIBRARY_DIR}/libtinybase.so;${FRAMEWORK_LIBRARY_DIR}/libtiny.so)
endif()
neuropod_add_backend(tiny_plugin PLATFORM tiny FRAMEWORK tiny FRAMEWORK_VERSION ${FRAMEWORK_VERSION}
  PYTHON_MODULE tiny_framework SOURCES tiny.cc LIBRARIES ${library})
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

    def write_wheel(self, folder, version):
        """A wheel of the framework, as pip takes it from a folder."""
        library = folder / "libtiny.so.1"
        make_library(library, version)
        info = f"tiny_framework-{version}.dist-info"
        folder.mkdir(exist_ok=True)
        with zipfile.ZipFile(folder / f"tiny_framework-{version}-py3-none-any.whl", "w") as wheel:
            wheel.writestr("tiny_framework/__init__.py", "raise SystemExit('not to be imported')")
            wheel.write(library, "tiny_framework/libtiny.so.1")
            metadata = f"Metadata-Version: 2.1\nName: tiny-framework\nVersion: {version}\n"
            wheel.writestr(f"{info}/METADATA", metadata)
            wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
            wheel.writestr(f"{info}/RECORD", "")

    def write_prefix(self, prefix, version="1.6.2", libraries="lib", headers="include", **options):
        """The framework in a folder of its own; returns the folder of its libraries."""
        folder = prefix / libraries
        make_library(folder / "libtinybase.so", version, **options)
        make_library(folder / "libtiny.so", version)
        if headers is not None:
            (prefix / headers / "tiny").mkdir(parents=True)
            (prefix / headers / "tiny" / "tiny.h").write_text("int tiny();\n")
            (prefix / headers / "tiny" / "version.h").write_text(
                f'#define TINY_VERSION \\\n  "{version}"\n'
            )
        return folder
