"""The GPU, the torch and the tools of this machine, or one line that says what is missing."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

from gpu_test.errors import NotPossibleError

MINIMUM_CMAKE = (3, 25)

# Runs in the interpreter whose torch is tested; prints one line of JSON.
ASK_TORCH = """
import json, os
answer = {"torch": None}
try:
    import torch
except Exception as error:
    answer["problem"] = f"{type(error).__name__}: {error}"
else:
    answer.update(torch=torch.__version__, cuda=torch.version.cuda, folder=os.path.dirname(torch.__file__))
    try:
        answer["gpus"] = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
        if answer["gpus"]:
            torch.zeros(1, device="cuda").add(1).cpu()
    except Exception as error:
        answer["problem"] = f"{type(error).__name__}: {error}"
print(json.dumps(answer))
"""

# What the core and the tests include and link: a file that must exist, Debian's package.
LIBRARIES = {
    "fmt/format.h": "libfmt-dev",
    "spdlog/spdlog.h": "libspdlog-dev",
    "nlohmann/json.hpp": "nlohmann-json3-dev",
    "openssl/evp.h": "libssl-dev",
    "zlib.h": "zlib1g-dev",
    "gtest/gtest.h": "libgtest-dev",
    "gmock/gmock.h": "libgmock-dev",
}


def nvidia_gpus() -> list[str]:
    """The GPUs that the driver lists, whatever torch says."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return []
    done = subprocess.run([tool, "-L"], capture_output=True, text=True, check=False)
    return [line.strip() for line in done.stdout.splitlines() if line.startswith("GPU ")]


def ask_torch(python: str) -> dict[str, Any]:
    """What the interpreter's torch says of itself and of the GPUs."""
    done = subprocess.run([python, "-c", ASK_TORCH], capture_output=True, text=True, check=False)
    try:
        return dict(json.loads(done.stdout.splitlines()[-1]))
    except (IndexError, ValueError):
        reason = (done.stderr.strip().splitlines() or ["it printed nothing"])[-1]
        return {"torch": None, "problem": f"{python} can't be asked for its torch: {reason}"}


def find_gpu(python: str) -> dict[str, Any] | None:
    """torch's answer if there is a GPU that it can use; None without any GPU.

    Raises NotPossibleError if there is one that it can't use.
    """
    listed, answer = nvidia_gpus(), ask_torch(python)
    if answer.get("gpus") and not answer.get("problem"):
        return answer
    if not listed and not answer.get("gpus"):
        return None
    found = f"GPU found ({'; '.join(listed or answer['gpus'])})"
    if answer["torch"] is None:
        raise NotPossibleError(
            f"{found} but {python} has no torch that can be imported ({answer.get('problem')}); "
            "--python names another interpreter"
        )
    if answer["cuda"] is None:
        raise NotPossibleError(
            f"{found} but torch {answer['torch']} is a CPU build: install one for CUDA, or name an "
            "interpreter that has one with --python"
        )
    raise NotPossibleError(
        f"{found} but torch {answer['torch']} for CUDA {answer['cuda']} can't use it: "
        f"{answer.get('problem', 'it finds no GPU')}; does the driver know this CUDA?"
    )


def find_tool(name: str, python: str) -> str | None:
    """In PATH, or beside the interpreter, where pip puts its cmake and ninja."""
    return shutil.which(name) or shutil.which(name, path=str(Path(python).parent))


def cmake_version(cmake: str) -> tuple[int, ...]:
    text = subprocess.run([cmake, "--version"], capture_output=True, text=True, check=False).stdout
    match = re.search(r"(\d+)\.(\d+)", text)
    return tuple(map(int, match.groups())) if match else (0, 0)


def has_header(compiler: str, header: str) -> bool:
    done = subprocess.run(
        [compiler, "-std=c++20", "-fsyntax-only", "-x", "c++", "-"],
        input=f"#if !__has_include(<{header}>)\n#error missing\n#endif\n",
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode == 0


def check_tools(python: str, with_core: bool) -> str:
    """Returns CMake's path. Raises NotPossibleError that names all that is missing."""
    missing, packages = [], []
    compiler = os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        missing.append("a C++20 compiler (g++ 12 or later)")
        packages.append("g++")
    cmake = find_tool("cmake", python)
    if cmake is None or cmake_version(cmake) < MINIMUM_CMAKE:
        missing.append(f"CMake {'.'.join(map(str, MINIMUM_CMAKE))} or later")
        packages.append("cmake")
    if find_tool("ninja", python) is None and shutil.which("make") is None:
        missing.append("ninja or make")
        packages.append("ninja-build")
    if with_core and compiler is not None:
        for header, package in LIBRARIES.items():
            if not has_header(compiler, header):
                missing.append(f"<{header}>")
                packages.append(package)
    if not missing:
        return str(cmake)
    advice = f"`apt-get install {' '.join(packages)}` brings it"
    if with_core:
        advice += (
            "; without root `tools/test_gpu.py --pack BUNDLE`, run where it all is, writes what "
        )
        advice += "--core takes here"
    raise NotPossibleError(f"missing: {', '.join(missing)}; {advice}")
