"""Configuring and compiling a plug-in, with its progress and a log."""

import re
import subprocess
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Final

from neuropod.backend_installer.errors import BackendInstallError
from neuropod.backend_installer.framework import Framework
from neuropod.backend_installer.sources import PluginSources
from neuropod.backend_installer.toolchain import Toolchain, parallel_jobs

Report = Callable[[str], None]

_LOG_LINES: Final = 25
# "[3/7] Building CXX object …/torch_backend.cc.o" (Ninja), "[ 42%] Building CXX object …" (make).
_STEP: Final = re.compile(r"\[ *(\d+/\d+|\d+%)\] (Building|Linking) \w+ .*?([^/ ]+?)(?:\.o)?$")


def configure_command(
    sources: PluginSources,
    framework: Framework,
    toolchain: Toolchain,
    build_folder: Path,
    *,
    source_folder: Path | None = None,
    definitions: Sequence[str] = (),
) -> list[str]:
    """The CMake call that configures a plug-in's project in `build_folder`.

    source_folder: where its sources are, if not the shipped ones. definitions: "NAME=value" each.
    """
    return [
        toolchain.cmake,
        *("-S", str(source_folder or sources.folder), "-B", str(build_folder)),
        *("-G", toolchain.generator),
        "-DCMAKE_BUILD_TYPE=Release",
        f"-DCMAKE_PREFIX_PATH={sources.prefix};{framework.module_folder}",
        f"-DFRAMEWORK_MODULE_DIR={framework.module_folder}",
        f"-DFRAMEWORK_VERSION={framework.semver}",
        *_places(framework),
        *(f"-D{definition}" for definition in definitions),
    ]


def _places(framework: Framework) -> Iterator[str]:
    """Where the framework's parts lie, if not where its Python module has them."""
    if framework.include_folder is not None:
        yield f"-DFRAMEWORK_INCLUDE_DIR={framework.include_folder}"
    if framework.library_folder is not None:
        yield f"-DFRAMEWORK_LIBRARY_DIR={framework.library_folder}"
    if framework.dependency_folders:
        yield f"-DFRAMEWORK_DEPENDENCY_DIRS={';'.join(map(str, framework.dependency_folders))}"


def build_plugin(
    sources: PluginSources,
    framework: Framework,
    toolchain: Toolchain,
    build_folder: Path,
    log_path: Path,
    report: Report,
) -> Path:
    """Builds in `build_folder` (which is made) and returns the folder of the finished plug-in.

    BackendInstallError holds the end of the log; the whole log stays at `log_path`.
    """
    configure = configure_command(sources, framework, toolchain, build_folder)
    build = [toolchain.cmake, "--build", str(build_folder), "--parallel", str(parallel_jobs())]
    log_path.parent.mkdir(parents=True, exist_ok=True)
    with log_path.open("w") as log:
        _run("configuring", configure, toolchain, log, report)
        _run("compiling", build, toolchain, log, report)
    found = sorted((build_folder / "lib" / "neuropod" / "backends").glob("*/backend.json"))
    if len(found) != 1:
        raise BackendInstallError(
            f"building {sources.folder} made {len(found)} plug-ins, not one; log: {log_path}"
        )
    return found[0].parent


def _run(what: str, command: list[str], toolchain: Toolchain, log: IO[str], report: Report) -> None:
    started = time.monotonic()
    tail: deque[str] = deque(maxlen=_LOG_LINES)
    report(f"{what} …")
    log.write(f"$ {' '.join(command)}\n")
    process = subprocess.Popen(
        command,
        env=toolchain.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    try:
        assert process.stdout is not None
        for line in process.stdout:
            log.write(line)
            tail.append(line.rstrip())
            step = _STEP.search(line.rstrip())
            if step is not None:
                verb = "linking" if step[2] == "Linking" else "compiling"
                report(f"[{step[1]}] {verb} {step[3]} ({time.monotonic() - started:.0f} s)")
        status = process.wait()
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait()
    if status != 0:
        log.flush()
        raise BackendInstallError(
            f"{what} the plug-in failed (exit code {status}); whole log: {log.name}; it ends:\n"
            + "\n".join(tail)
        )
