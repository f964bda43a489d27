"""Runs the test programs and reads what they say."""

import json
import os
import subprocess
from pathlib import Path

from gpu_test.build import Deadline
from gpu_test.errors import FailedError

# Numbers of the contract suite's tests of devices.
DEVICE_TESTS = "C11"


def find_program(folder: Path, name: str) -> Path:
    for path in folder.rglob(name):
        if path.is_file() and os.access(path, os.X_OK):
            return path
    raise FailedError(f"building made no {name} in {folder}")


def run_tests(folder: Path, deadline: Deadline) -> tuple[int, list[str]]:
    """Runs each program; returns how many tests ran, and what failed."""
    environment = {
        **os.environ,
        "NEUROPOD_BACKEND_PATH": str(folder / "lib" / "neuropod" / "backends"),
        "XDG_DATA_HOME": str(folder / "no-data-home"),
    }
    programs = {
        "torch_device_test": [],
        "torchscript_contract_suite": ["--fixtures", str(folder / "fixtures" / "fixtures.json")],
        "torch_memory_test": [],
    }
    count, failed = 0, []
    for name, arguments in programs.items():
        program = find_program(folder, name)
        results = folder / f"{name}.json"
        results.unlink(missing_ok=True)
        print(f"running {name} …", flush=True)
        command = [str(program), *arguments, "--gtest_brief=1", f"--gtest_output=json:{results}"]
        try:
            code = subprocess.run(
                command, env=environment, timeout=deadline.left(), check=False
            ).returncode
        except subprocess.TimeoutExpired:
            failed.append(f"{name} (wasn't done in time)")
            continue
        ran, broken = read_results(results)
        count += ran
        failed += [f"{name}: {test}" for test in broken]
        if code != 0 and not broken:
            failed.append(f"{name} (ended with {code})")
    return count, failed


def read_results(results: Path) -> tuple[int, list[str]]:
    """How many tests ran, and the names of those that failed.

    What a capability leaves out didn't run. A test of devices that was left out has failed: the GPU
    wasn't seen.
    """
    if not results.is_file():
        return 0, []
    ran = 0
    failed: list[str] = []
    for suite in json.loads(results.read_text())["testsuites"]:
        for test in suite["testsuite"]:
            name = test["name"]
            if test.get("result") == "SKIPPED" or test.get("status") == "NOTRUN":
                if name.startswith(DEVICE_TESTS):
                    failed.append(f"{name} (left out: its models saw no GPU)")
                continue
            ran += 1
            if test.get("failures"):
                failed.append(name)
    return ran, failed
