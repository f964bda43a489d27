"""Builds the core, the plug-in and its tests, within the time that is left."""

import os
import re
import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gpu_test.errors import FailedError, NotPossibleError
from gpu_test.machine import find_tool

ROOT = Path(__file__).resolve().parents[2]
SYSTEM = Path("/usr")
# What the tests include and link, and how CMake finds it, as Debian has it below SYSTEM.
TEST_FILES = (
    *("include/gtest", "include/gmock", "include/nlohmann"),
    *("lib/*/libgtest*.a", "lib/*/libgmock*.a", "lib/*/cmake/GTest", "lib/cmake/GTest"),
    *("share/cmake/nlohmann_json", "lib/*/cmake/nlohmann_json", "lib/cmake/nlohmann_json"),
)
PLUGIN = ROOT / "source" / "neuropod" / "backends" / "torchscript"


class Deadline:
    """The time that is left, in seconds."""

    def __init__(self, limit: float) -> None:
        self.limit = limit
        self._end = time.monotonic() + limit

    def left(self) -> float:
        return max(1.0, self._end - time.monotonic())


def run(what: str, command: Sequence[str | Path], deadline: Deadline, log: Path) -> None:
    """Runs a step of the build; raises FailedError with the end of its output."""
    print(f"{what} …", flush=True)
    begin = time.monotonic()
    with log.open("a") as output:
        output.write(f"\n$ {' '.join(map(str, command))}\n")
        output.flush()
        try:
            done = subprocess.run(
                [str(part) for part in command],
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=deadline.left(),
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise FailedError(
                f"{what} wasn't done when the {deadline.limit:.0f} s of --limit ended; what is built "
                f"stays, and the next run goes on from there; log: {log}"
            ) from error
    if done.returncode != 0:
        end = "\n".join(log.read_text(errors="replace").splitlines()[-40:])
        raise FailedError(f"{what} failed (log: {log}):\n{end}")
    print(f"{what}: {time.monotonic() - begin:.0f} s", flush=True)


def jobs() -> str:
    """As many compilers as CPUs and memory allow: one takes up to 2 GiB."""
    memory = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 31
    return str(max(1, min(len(os.sched_getaffinity(0)), memory)))


def generator(python: str) -> list[str]:
    ninja = find_tool("ninja", python)
    return ["-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={ninja}"] if ninja else ["-G", "Unix Makefiles"]


def build_core(cmake: str, python: str, build: Path, prefix: Path, deadline: Deadline) -> None:
    """Builds libneuropod and installs it at `prefix`."""
    folder, log = build / "core", build / "core.log"
    configure: list[str | Path] = [
        cmake,
        "-S",
        ROOT,
        "-B",
        folder,
        *generator(python),
        "-DCMAKE_BUILD_TYPE=Release",
    ]
    configure += [f"-DNEUROPOD_BUILD_{part}=OFF" for part in ("TESTS", "BENCHMARKS", "EXAMPLES")]
    configure += ["-DNEUROPOD_BUILD_PYTHON=OFF", "-DCMAKE_INSTALL_LIBDIR=lib"]
    run("configuring the core", configure, deadline, log)
    run("building the core", [cmake, "--build", folder, "--parallel", jobs()], deadline, log)
    run("installing the core", [cmake, "--install", folder, "--prefix", prefix], deadline, log)


def pack(cmake: str, python: str, build: Path, bundle: Path, deadline: Deadline) -> None:
    """Writes what another machine needs: the core, and the tests' headers and libraries."""
    if bundle.exists():
        raise NotPossibleError(f"{bundle} exists already; name a folder that doesn't")
    build_core(cmake, python, build, bundle, deadline)
    for pattern in TEST_FILES:
        for path in SYSTEM.glob(pattern):
            target = bundle / path.relative_to(SYSTEM)
            target.parent.mkdir(parents=True, exist_ok=True)
            if path.is_dir():
                shutil.copytree(path, target, dirs_exist_ok=True)
            else:
                shutil.copy(path, target)
    print(f"{bundle} is what --core takes on the machine with the GPU")


def build_tests(
    cmake: str, python: str, torch: dict[str, Any], build: Path, prefix: Path, deadline: Deadline
) -> Path:
    """Builds the plug-in, the contract suite and the device tests; returns their folder."""
    folder, log = build / "torchscript", build / "torchscript.log"
    version = re.match(r"\d+\.\d+\.\d+", torch["torch"])
    configure: list[str | Path] = [cmake, "-S", PLUGIN, "-B", folder, *generator(python)]
    configure += ["-DCMAKE_BUILD_TYPE=Release", f"-DCMAKE_PREFIX_PATH={prefix}"]
    configure += [
        f"-DFRAMEWORK_MODULE_DIR={torch['folder']}",
        f"-DFRAMEWORK_VERSION={version.group() if version else torch['torch']}",
    ]
    configure += ["-DNEUROPOD_BUILD_TESTS=ON", f"-DNEUROPOD_TEST_PYTHON={python}"]
    run("configuring the plug-in", configure, deadline, log)
    command: list[str | Path] = [cmake, "--build", folder, "--parallel", jobs(), "--target"]
    command += ["neuropod_torchscript", "torchscript_contract_suite", "torch_memory_test"]
    command += ["torch_device_test", "torch_device_fixtures"]
    run("building the plug-in and its tests", command, deadline, log)
    return folder
