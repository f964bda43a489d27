"""The compiler and CMake, or one line that says what is missing."""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from neuropod.backend_installer.errors import MissingToolsError

MINIMUM_CMAKE: Final = (3, 25)
_BYTES_PER_COMPILER: Final = 2 << 30
_COMPILERS: Final = ("g++", "c++", "clang++")


@dataclass(frozen=True)
class Toolchain:
    """What builds a plug-in."""

    cmake: str
    generator: str
    environment: dict[str, str]
    """For CMake: PATH, and CXX with the compiler."""


def find_toolchain() -> Toolchain:
    """Looks in PATH and beside the interpreter, where pip puts its cmake and ninja.

    MissingToolsError names everything that is missing and how to install it.
    """
    environment = dict(os.environ)
    path = f"{environment.get('PATH', os.defpath)}{os.pathsep}{Path(sys.executable).parent}"
    environment["PATH"] = path
    cmake, cmake_problem = _find_cmake(path)
    compiler = _find_compiler(environment)
    ninja = shutil.which("ninja", path=path)
    problems = [] if cmake_problem is None else [cmake_problem]
    if compiler is None:
        problems.append(f"a C++ compiler ({environment.get('CXX') or 'g++'} not found)")
    if ninja is None and shutil.which("make", path=path) is None:
        problems.append("make or ninja (neither found)")
    if problems or cmake is None or compiler is None:
        raise MissingToolsError(
            f"building a plug-in needs {' and '.join(problems)}; on Debian `apt-get install g++ "
            f"make cmake` installs them, or `{sys.executable} -m pip install cmake ninja` all but "
            "the compiler"
        )
    environment["CXX"] = compiler
    return Toolchain(cmake, "Ninja" if ninja else "Unix Makefiles", environment)


def parallel_jobs() -> int:
    """As many compilers as CPUs and memory allow: one takes up to 2 GiB."""
    cpus = len(os.sched_getaffinity(0))
    available = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return max(1, min(cpus, available // _BYTES_PER_COMPILER))


def _find_cmake(path: str) -> tuple[str | None, str | None]:
    """CMake's path, and what is wrong (None: nothing)."""
    wanted = f"CMake >= {MINIMUM_CMAKE[0]}.{MINIMUM_CMAKE[1]}"
    cmake = shutil.which("cmake", path=path)
    if cmake is None:
        return None, f"{wanted} (not found)"
    printed = subprocess.run(
        [cmake, "--version"], capture_output=True, text=True, check=False
    ).stdout
    match = re.search(r"version (\d+)\.(\d+)", printed)
    if match is None:
        return None, f"{wanted} ({cmake} doesn't run)"
    if tuple(map(int, match.groups())) < MINIMUM_CMAKE:
        return None, f"{wanted} ({cmake} is {match[1]}.{match[2]})"
    return cmake, None


def _find_compiler(environment: dict[str, str]) -> str | None:
    chosen = environment.get("CXX")
    for name in (chosen,) if chosen else _COMPILERS:
        found = shutil.which(name.split()[0], path=environment["PATH"])
        if found is not None:
            return name if chosen else found
    return None
