"""Custom operators and classes that travel in the package.

Each test runs in a process of its own, because torch keeps what was registered for as long as a process
lives.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

OPERATOR = """
#include <ATen/ATen.h>
#include <torch/custom_class.h>
#include <torch/library.h>

namespace {
at::Tensor add_and_scale(const at::Tensor& x, const at::Tensor& y) { return (x + y) * SCALE; }

struct Counter : torch::CustomClassHolder {
  int64_t count = 0;
  int64_t next() { return ++count; }
};
}  // namespace

TORCH_LIBRARY(neuropod_test_ops, m) {
  m.def("add_and_scale(Tensor x, Tensor y) -> Tensor", &add_and_scale);
  m.class_<Counter>("Counter").def(torch::init<>()).def("next", &Counter::next);
}
"""

WRITE_PACKAGES = """
import sys
import torch
from pathlib import Path
from torch import Tensor
sys.path.insert(0, HERE)
from torchscript_packages import write_torchscript_package
root = Path(ROOT)
torch.ops.load_library(str(root / "addition.so"))

class Model(torch.nn.Module):
    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        counter = torch.classes.neuropod_test_ops.Counter()
        counter.next()
        return torch.ops.neuropod_test_ops.add_and_scale(x, y) + counter.next()

spec = [("x", "float32", (None,)), ("y", "float32", (None,))]
for folder, names in PACKAGES.items():
    package = write_torchscript_package(
        root / folder, Model(), spec, [("out", "float32", (None,))], custom_ops=list(names)
    )
    (package / "0/ops").mkdir()
    for name, source in names.items():
        (package / "0/ops" / name).write_bytes((root / source).read_bytes())
"""

INFER = """
import numpy as np
from neuropod import load_neuropod
def infer(folder, use_ope=USE_OPE):
    with load_neuropod(f"{ROOT}/{folder}", use_ope=use_ope) as model:
        return model.infer({"x": np.float32([1]), "y": np.float32([2])})["out"].tolist()
"""


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the packages "twice" (one library under two names), "once" and "other" (another
    library that registers the same namespace)."""
    root = tmp_path_factory.mktemp("custom_ops")
    for name, scale in (("addition", 10), ("other", 20)):
        build_operator(root / f"{name}.so", scale)
    written = {
        "twice": {"addition.so": "addition.so", "addition_copy.so": "addition.so"},
        "once": {"renamed.so": "addition.so"},
        "other": {"other.so": "other.so"},
        "same_name": {"addition.so": "other.so"},
    }
    run(root, f"PACKAGES = {written!r}\nHERE = {str(Path(__file__).parent)!r}\n" + WRITE_PACKAGES)
    return root


def build_operator(target: Path, scale: int) -> None:
    source = target.with_suffix(".cc")
    source.write_text(OPERATOR)
    torch_folder = Path(torch.__file__).parent
    compiler = shutil.which("g++")
    assert compiler is not None
    subprocess.run(
        [
            *(compiler, "-shared", "-fPIC", "-std=c++20", "-O1", f"-DSCALE={scale}"),
            *("-isystem", torch_folder / "include"),
            *("-isystem", torch_folder / "include/torch/csrc/api/include"),
            *(source, "-o", target, "-L", torch_folder / "lib", "-Wl,--no-as-needed"),
            *("-lc10", "-ltorch_cpu"),
        ],
        check=True,
    )


def run(root: Path, program: str, use_ope: bool = False) -> str:
    # A file, because TorchScript reads the source of what it compiles.
    script = root / "program.py"
    script.write_text(f"ROOT = {str(root)!r}\nUSE_OPE = {use_ope}\n{program}")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", script],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_operators_and_classes_are_loaded_once_whatever_their_names(
    packages: Path, use_ope: bool
) -> None:
    program = INFER + "print([infer('twice'), infer('once'), infer('twice')])"
    assert json.loads(run(packages, program, use_ope)) == [[32], [32], [32]]


def test_an_operator_that_the_host_has_loaded_is_not_loaded_again(packages: Path) -> None:
    program = INFER + (
        "import torch\n"
        "torch.ops.load_library(ROOT + '/addition.so')\n"
        "print([infer('twice'), infer('once')])"
    )
    assert json.loads(run(packages, program)) == [[32], [32]]


@pytest.mark.parametrize("first", ["once", "twice"])
@pytest.mark.parametrize("second", ["other", "same_name"])
def test_two_libraries_for_one_namespace_are_a_conflict(
    packages: Path, first: str, second: str
) -> None:
    program = INFER + (
        "from neuropod import VersionConflictError\n"
        f"infer({first!r})\n"
        "try:\n"
        f"    infer({second!r})\n"
        "except VersionConflictError as error:\n"
        f"    print('neuropod_test_ops' in str(error), 'use_ope=True' in str(error), infer({first!r}))"
    )
    assert run(packages, program) == "True True [32.0]"


@pytest.mark.parametrize("second", ["other", "same_name"])
def test_workers_have_no_conflict(packages: Path, second: str) -> None:
    program = INFER + (
        f"print([infer('once', False), infer({second!r}, True), infer('once', True), infer('once', False)])"
    )
    assert json.loads(run(packages, program)) == [[32], [62], [32], [32]]


def test_a_library_that_is_missing_is_named(packages: Path, use_ope: bool) -> None:
    program = INFER + (
        "import pathlib, shutil\n"
        "shutil.copytree(ROOT + '/once', ROOT + '/missing', dirs_exist_ok=True)\n"
        "pathlib.Path(ROOT, 'missing/0/ops/renamed.so').unlink()\n"
        "from neuropod import NeuropodError\n"
        "try:\n"
        "    infer('missing')\n"
        "except NeuropodError as error:\n"
        "    print(error.code, 'renamed.so' in str(error))"
    )
    assert run(packages, program, use_ope) == "not_found True"


def test_a_library_that_cannot_be_opened_is_tried_again(packages: Path, use_ope: bool) -> None:
    program = INFER + (
        "import pathlib, shutil\n"
        "shutil.copytree(ROOT + '/once', ROOT + '/broken', dirs_exist_ok=True)\n"
        "library = pathlib.Path(ROOT, 'broken/0/ops/renamed.so')\n"
        "whole = library.read_bytes()\n"
        "library.write_bytes(b'no library')\n"
        "from neuropod import LoadFailedError\n"
        "try:\n"
        "    infer('broken')\n"
        "except LoadFailedError as error:\n"
        "    print('renamed.so' in str(error))\n"
        "library.write_bytes(whole)\n"
        "print(infer('broken'))"
    )
    assert run(packages, program, use_ope) == "True\n[32.0]"
