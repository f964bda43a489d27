"""The release build in `build/release/`, installed editable, and the TorchScript plug-in."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from setup_environment import stamps
from setup_environment.paths import BUILD, ROOT, VENV_BIN, VENV_PYTHON
from setup_environment.progress import run_logged

_STAMP = "build"
_PLUGIN_STAMP = "torchscript-plugin"
# What pyproject.toml leaves out of a wheel: a checkout builds everything.
_EVERYTHING = {f"NEUROPOD_BUILD_{part}": "ON" for part in ("TESTS", "BENCHMARKS", "EXAMPLES")}
_SOURCE_SUFFIXES = {".cc", ".hh", ".h", ".c", ".cmake", ".in", ".map"}
_BUILD_FILES = {"CMakeLists.txt", "CMakePresets.json", "pyproject.toml", "nanobind.supp"}
_SKIPPED_FOLDERS = {".git", ".venv", "build", "site", "dist", "docs", "__pycache__"}


def is_due() -> bool:
    """Whether a source differs from what was built last, or the build is gone."""
    return not (BUILD / "CMakeCache.txt").is_file() or not stamps.matches(_STAMP, _fingerprint())


def build_and_install(environment_is_new: bool) -> None:
    """Builds libraries, programs and C++ tests, and installs the package into `.venv/`.

    Only what changed is compiled: the build folder is kept, and ccache serves where it's there.
    With a new environment CMake looks for Python and its packages anew.
    """
    stamps.clear(_STAMP)
    if environment_is_new:
        (BUILD / "CMakeCache.txt").unlink(missing_ok=True)
    before = _fingerprint()
    command = [str(VENV_PYTHON), "-m", "pip", "install", "--verbose", "--disable-pip-version-check"]
    command += ["--no-build-isolation", "--no-deps", "--editable", "."]
    command += ["--config-settings=build-dir=build/release"]
    run_logged("compiling", command, "build.log", {**_compiler_environment(), **_EVERYTHING})
    stamps.write(_STAMP, before)


def install_torchscript_plugin() -> None:
    """Has the command line compile the plug-in against the environment's own torch.

    The command itself finds out whether an installed plug-in still fits.
    """
    run_logged(
        "neuropod backends install torchscript",
        [VENV_BIN / "neuropod", "backends", "install", "torchscript"],
        "plugin-torchscript.log",
        _compiler_environment(),
    )


def _compiler_environment() -> dict[str, str]:
    """PATH with `.venv/bin` first, and ccache as launcher where nothing else was chosen."""
    environment = {"PATH": f"{VENV_BIN}{os.pathsep}{os.environ.get('PATH', os.defpath)}"}
    if shutil.which("ccache") is not None:
        for language in ("C", "CXX"):
            name = f"CMAKE_{language}_COMPILER_LAUNCHER"
            environment[name] = os.environ.get(name, "ccache")
    return environment


def _fingerprint() -> str:
    """Contents of what the compiler sees; of Python files only the names.

    An editable installation reads Python sources from the tree, but maps them by name.
    """
    python_sources = (str(p.relative_to(ROOT)) for p in (ROOT / "python").rglob("*.py"))
    return stamps.fingerprint(_compiled_files(), sorted(python_sources))


def _compiled_files() -> Iterator[Path]:
    for folder, subfolders, names in os.walk(ROOT):
        subfolders[:] = [name for name in subfolders if name not in _SKIPPED_FOLDERS]
        for name in names:
            path = Path(folder, name)
            if name in _BUILD_FILES or path.suffix in _SOURCE_SUFFIXES:
                yield path
