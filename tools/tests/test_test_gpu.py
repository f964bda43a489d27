"""`make test-gpu` on machines that tests can pretend: what it finds, says and ends with."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from gpu_test import build, machine, running
from gpu_test.errors import FailedError, NotPossibleError

SCRIPT = Path(__file__).resolve().parents[1] / "test_gpu.py"
GPU = "GPU 0: NVIDIA H200 (UUID: GPU-1)"
CUDA_TORCH = {"torch": "2.13.0", "cuda": "13.0", "folder": "/torch", "gpus": ["NVIDIA H200"]}


def executable(path, text):
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.fixture
def pretend(tmp_path):
    """`pretend(torch, gpu)` makes a machine with that torch and driver; returns its arguments."""

    def make(torch, gpu):
        tools = tmp_path / "tools"
        tools.mkdir()
        if gpu:
            executable(tools / "nvidia-smi", f"#!/bin/sh\necho '{gpu}'\n")
        answer = tmp_path / "answer"
        answer.write_text(torch if isinstance(torch, str) else json.dumps(torch))
        python = executable(tools / "python", f"#!/bin/sh\ncat '{answer}'\n")
        environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"}
        command = [sys.executable, str(SCRIPT), "--python", str(python)]
        command += ["--build-dir", str(tmp_path / "build")]
        return command, environment

    return make


def run(command, environment):
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    "torch",
    [
        {"torch": "2.13.0+cpu", "cuda": None, "folder": "/t", "gpus": []},
        {"torch": "2.13.0", "cuda": "13.0", "folder": "/t", "gpus": []},
        {"torch": None, "problem": "ModuleNotFoundError: No module named 'torch'"},
        "no JSON",
    ],
)
def test_without_a_gpu_nothing_runs_and_nothing_fails(pretend, tmp_path, torch):
    assert run(*pretend(torch, gpu=None)) == (0, "no GPU: 0 run\n", "")
    assert not (tmp_path / "build").exists()


@pytest.mark.parametrize(
    ("torch", "expected"),
    [
        (
            {"torch": "2.13.0+cpu", "cuda": None, "folder": "/t", "gpus": []},
            "but torch 2.13.0+cpu is a CPU build: install one for CUDA",
        ),
        (
            {"torch": None, "problem": "ModuleNotFoundError: No module named 'torch'"},
            "has no torch that can be imported (ModuleNotFoundError: No module named 'torch')",
        ),
        (
            {"torch": "2.13.0", "cuda": "13.0", "folder": "/t", "gpus": []},
            "but torch 2.13.0 for CUDA 13.0 can't use it: it finds no GPU",
        ),
        (
            {**CUDA_TORCH, "problem": "RuntimeError: CUDA driver version is insufficient"},
            "can't use it: RuntimeError: CUDA driver version is insufficient",
        ),
        ("no JSON", "can't be asked for its torch"),
    ],
)
def test_a_gpu_that_torch_cannot_use_is_2_and_says_why(pretend, torch, expected):
    code, out, err = run(*pretend(torch, GPU))
    assert (code, out) == (2, "")
    assert err.startswith(f"test-gpu: GPU found ({GPU}) but ")
    assert expected in err
    assert err.count("\n") == 1


def test_with_a_gpu_it_goes_on_to_build(pretend, tmp_path):
    command, environment = pretend(CUDA_TORCH, GPU)
    # A compiler that fails shows how far it came.
    environment["CXX"] = str(executable(tmp_path / "broken-g++", "#!/bin/sh\nexit 0\n"))
    code, out, err = run(command, environment)
    assert code == 1
    assert out.startswith("GPU: NVIDIA H200; torch 2.13.0, CUDA 13.0\nconfiguring the core …\n")
    assert "configuring the core failed" in err
    assert str(tmp_path / "build" / "core.log") in err


def test_everything_that_is_missing_is_named_at_once(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    python = str(tmp_path / "python")
    with pytest.raises(NotPossibleError) as caught:
        machine.check_tools(python, with_core=True)
    for part in ("g++ 12", "CMake 3.25", "ninja or make", "apt-get install g++ cmake ninja-build"):
        assert part in str(caught.value)
    assert "--pack" in str(caught.value)


def test_libraries_that_are_missing_are_named_with_their_packages(tmp_path, monkeypatch):
    monkeypatch.setenv("CXX", str(executable(tmp_path / "g++", "#!/bin/sh\nexit 1\n")))
    with pytest.raises(NotPossibleError, match=r"<fmt/format\.h>.*apt-get install.*libfmt-dev"):
        machine.check_tools(sys.executable, with_core=True)
    assert machine.check_tools(sys.executable, with_core=False)


def test_this_machines_libraries_are_seen():
    machine.check_tools(sys.executable, with_core=True)


def test_a_step_that_takes_too_long_ends_with_advice(tmp_path):
    deadline = build.Deadline(0)
    with pytest.raises(FailedError, match="the next run goes on from there"):
        build.run("sleeping", ["sleep", "60"], deadline, tmp_path / "log")


def results(path, **tests):
    entries = [{"name": name, **fields} for name, fields in tests.items()]
    path.write_text(json.dumps({"testsuites": [{"testsuite": entries}]}))
    return path


def test_results_are_counted(tmp_path):
    passed = {"status": "RUN", "result": "COMPLETED"}
    file = results(
        tmp_path / "r.json",
        C0101_Passes=passed,
        C0102_Fails={**passed, "failures": [{"failure": "x"}]},
        C0103_LeftOut={"status": "RUN", "result": "SKIPPED"},
    )
    assert running.read_results(file) == (2, ["C0102_Fails"])
    assert running.read_results(tmp_path / "none.json") == (0, [])


def test_tests_of_devices_that_were_left_out_have_failed(tmp_path):
    file = results(tmp_path / "r.json", C1102_Moves={"status": "RUN", "result": "SKIPPED"})
    ran, (failed,) = running.read_results(file)
    assert ran == 0
    assert failed.startswith("C1102_Moves (left out")


def test_programs_are_run_and_their_end_is_noticed(tmp_path, capfd):
    for name, text in {
        "torch_device_test": 'echo "{\\"testsuites\\": []}" > "${2#--gtest_output=json:}"',
        "torchscript_contract_suite": "exit 3",
        "torch_memory_test": "exit 0",
    }.items():
        executable(tmp_path / name, f"#!/bin/sh\n{text}\n")
    count, failed = running.run_tests(tmp_path, build.Deadline(60))
    assert (count, failed) == (0, ["torchscript_contract_suite (ended with 3)"])
