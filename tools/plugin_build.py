#!/usr/bin/env python3
"""Builds the plug-ins' projects of this checkout in `build/plugins/<platform>/`.

`neuropod backends install` builds from the installed sources and keeps only the plug-in; tests and
lint want the build folder too. `configure` makes the compile commands that clang-tidy reads, `test`
builds and runs a project's own C++ tests. Both need the package installed (`make setup`).
"""

import argparse
import subprocess
import sys
from pathlib import Path

from neuropod.backend_installer.build import configure_command
from neuropod.backend_installer.framework import find_framework
from neuropod.backend_installer.sources import find_sources, shipped_platforms
from neuropod.backend_installer.toolchain import find_toolchain, parallel_jobs

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ROOT / "source" / "neuropod" / "backends"
BUILD = ROOT / "build" / "plugins"


def run(command: list[str], environment: dict[str, str], quiet: bool = False) -> bool:
    """Runs a command from the checkout; a quiet one shows its output only if it fails."""
    answer = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=quiet, text=True, check=False
    )
    if quiet and answer.returncode != 0:
        print(answer.stdout + answer.stderr, flush=True)
    return answer.returncode == 0


def configure(platform: str) -> bool:
    """Configures one plug-in's project, its tests included where it has some."""
    folder = SOURCES / platform
    sources = find_sources(platform)
    toolchain = find_toolchain()
    has_tests = (folder / "testing" / "CMakeLists.txt").is_file()
    command = configure_command(
        sources,
        find_framework(sources),
        toolchain,
        BUILD / platform,
        source_folder=folder,
        definitions=[
            "CMAKE_EXPORT_COMPILE_COMMANDS=ON",
            f"NEUROPOD_BUILD_TESTS={'ON' if has_tests else 'OFF'}",
        ],
    )
    return run(command, toolchain.environment, quiet=True)


def build_and_test(platform: str) -> bool:
    """Builds a configured project and runs its tests; true also where it has none."""
    if not (SOURCES / platform / "testing" / "CMakeLists.txt").is_file():
        return True
    toolchain = find_toolchain()
    folder = str(BUILD / platform)
    jobs = str(parallel_jobs())
    build = [toolchain.cmake, "--build", folder, "--parallel", jobs]
    test = ["ctest", "--test-dir", folder, "--output-on-failure", "--no-tests=error", "-j", jobs]
    print(f"building the tests of the {platform} plug-in …", flush=True)
    return run(build, toolchain.environment, quiet=True) and run(test, toolchain.environment)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("action", choices=("configure", "test"))
    action = parser.parse_args().action
    failed = [
        platform
        for platform in shipped_platforms()
        if not configure(platform) or (action == "test" and not build_and_test(platform))
    ]
    if failed:
        print(f"plug-ins that failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
