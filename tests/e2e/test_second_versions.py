"""One machine, two versions of torch: each process runs the one that its package asks for.

The second torch is Debian's libtorch, unpacked into a folder (bookworm: 1.13, trixie: 2.6). The programs
that load models here see no torch of their own: a host that could import one gets only that copy.
"""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest
from installed_prefix import WARNINGS, run
from second_torch import unpacked_libtorch

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
WIDE_UNSIGNED = ("uint16", "uint32", "uint64")

PACKAGE = """
import sys
import torch
from neuropod.packagers import create_torchscript_neuropod

class Classifier(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4), torch.nn.Softmax(dim=1)
        )

    def forward(self, x):
        scores = self.layers(x)
        return {"scores": scores, "best": scores.argmax(dim=1)}

torch.manual_seed(7)
for path, versions in zip(sys.argv[1::2], sys.argv[2::2]):
    create_torchscript_neuropod(
        neuropod_path=path,
        model_name="classifier",
        module=torch.jit.script(Classifier().eval()),
        input_spec=[{"name": "x", "dtype": "float32", "shape": ("batch", 8)}],
        output_spec=[
            {"name": "scores", "dtype": "float32", "shape": ("batch", 4)},
            {"name": "best", "dtype": "int64", "shape": ("batch",)},
        ],
        platform_version_semver=versions,
    )
"""

RUN = """
import sys
import numpy as np
from neuropod import load_neuropod

with load_neuropod(sys.argv[1]) as model:
    outputs = model.infer({"x": np.load(sys.argv[2])})
    np.savez(sys.argv[3], **outputs)
libraries = {line.split()[-1] for line in open("/proc/self/maps") if "/libtorch_cpu" in line}
print(*libraries)
"""

RUN_BOTH = """
import sys
import numpy as np
from neuropod import VersionConflictError, load_neuropod

x = np.load(sys.argv[1])
here = load_neuropod("new.neuropod")
try:
    load_neuropod("old.neuropod")
except VersionConflictError as error:
    print("conflict", "use_ope=True" in str(error))
old = load_neuropod("old.neuropod", use_ope=True)
new = load_neuropod("new.neuropod", use_ope=True)
for _ in range(3):
    outputs = [model.infer({"x": x}) for model in (here, old, new)]
    for other in outputs[1:]:
        np.testing.assert_allclose(outputs[0]["scores"].sum(axis=1), other["scores"].sum(axis=1), rtol=1e-5)
np.testing.assert_allclose(outputs[0]["scores"], outputs[2]["scores"], rtol=1e-6)
for model in (old, new):
    maps = open(f"/proc/{model.workers()[0]['pid']}/maps")
    print(*{line.split()[-1] for line in maps if "/libtorch_cpu" in line})
same = load_neuropod("any.neuropod")
old_same = load_neuropod("any.neuropod", use_ope=True, backend_overrides=[("torchscript", "", sys.argv[2])])
np.testing.assert_allclose(same.infer({"x": x})["scores"], old_same.infer({"x": x})["scores"], rtol=1e-5)
"""

RUN_BOTH_IN_CPP = r"""
#include <neuropod/neuropod.hh>

#include <cmath>
#include <fstream>
#include <iostream>
#include <set>
#include <string>
#include <vector>

using namespace neuropod;

namespace {

std::vector<float> scores(const Neuropod& model) {
  auto x = model.allocate_tensor<float>({5, 8});
  for (int i = 0; i < 40; ++i) x->get_raw_data_ptr()[i] = 0.1f * float(i % 7);
  const auto outputs = model.infer({{"x", x}});
  return outputs->at("scores")->as_tensor()->as_typed_tensor<float>()->get_data_as_vector();
}

// The torch library that a process has loaded.
std::string library_of(const std::string& pid) {
  std::ifstream maps("/proc/" + pid + "/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find("/libtorch_cpu") != std::string::npos) return line.substr(line.find('/'));
  }
  return "none";
}

std::string library_of(const Neuropod& model) {
  return library_of(std::to_string(model.workers().at(0).pid));
}

}  // namespace

int main(int, char** argv) {
  RuntimeOptions worker;
  worker.use_ope = true;
  const Neuropod old_one("old.neuropod", worker);
  const Neuropod new_one("new.neuropod", worker);
  if (library_of("self") != "none") return 1;
  std::cout << library_of(old_one) << "\n" << library_of(new_one) << "\n";

  const std::vector<float> on_old = scores(Neuropod("any.neuropod", {{"torchscript", "", argv[1]}}, worker));
  const std::vector<float> on_new = scores(Neuropod("any.neuropod", worker));
  for (size_t i = 0; i < on_old.size(); ++i) {
    if (std::abs(on_old[i] - on_new[i]) > 1e-6f) return 2;
  }
  if (on_old.size() != 20 || scores(old_one).size() != 20 || scores(new_one).size() != 20) return 3;

  const Neuropod here("new.neuropod");
  try {
    const Neuropod refused("old.neuropod");
    return 4;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kVersionConflict) return 5;
    if (error.message().find("use_ope=True") == std::string::npos) return 6;
  }
  const Neuropod works("old.neuropod", worker);
  if (scores(works) != scores(old_one) || scores(here) != scores(new_one)) return 7;
  std::cout << library_of("self") << "\n";
}
"""


class TorchlessEnvironment:
    """The environment of the tests but for torch: a new one with links to its packages."""

    def __init__(self, root: Path) -> None:
        self.work = root
        self.data = root / "data"
        self.bin = root / "venv" / "bin"
        venv = [sys.executable, "-m", "venv", "--without-pip", str(root / "venv")]
        subprocess.run(venv, check=True)
        ours = Path(sysconfig.get_path("purelib"))
        theirs = Path(sysconfig.get_path("purelib", "venv", {"base": str(root / "venv")}))
        for entry in ours.iterdir():
            if not entry.name.startswith(("torch", "functorch")):
                (theirs / entry.name).symlink_to(entry)
        hidden = ("PYTHONPATH", "NEUROPOD_BACKEND_PATH", "NEUROPOD_BASE_DIR", "VIRTUAL_ENV")
        self.environment = {k: v for k, v in os.environ.items() if k not in hidden}
        self.environment["XDG_DATA_HOME"] = str(self.data)
        if shutil.which("ccache"):
            self.environment.setdefault("CMAKE_CXX_COMPILER_LAUNCHER", "ccache")

    def run(self, *command: str, python: Path | None = None, **environment: str) -> str:
        """Standard output of `python …`, which must succeed."""
        done = subprocess.run(
            [str(python or self.bin / "python"), *command],
            cwd=self.work,
            env=self.environment | environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def neuropod(self, *arguments: str, python: Path | None = None, **environment: str) -> str:
        return self.run("-m", "neuropod", *arguments, python=python, **environment)

    def infer(self, package: str, **environment: str) -> tuple[dict[str, np.ndarray], str]:
        """The outputs, and the torch library that the process had loaded."""
        self.work.joinpath("run.py").write_text(RUN)
        library = self.run("run.py", package, "x.npy", "outputs.npz", **environment).strip()
        with np.load(self.work / "outputs.npz") as outputs:
            return dict(outputs), library


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> TorchlessEnvironment:
    new = TorchlessEnvironment(tmp_path_factory.mktemp("second"))
    packager = new.work / "package.py"
    packager.write_text(PACKAGE)
    packages = ("any.neuropod", "*", "old.neuropod", "<2.7", "new.neuropod", ">=2.13")
    new.run("-W", "ignore", "package.py", *packages, python=Path(sys.executable))
    np.save(new.work / "x.npy", np.random.default_rng(1).normal(size=(5, 8)).astype("float32"))
    return new


@pytest.fixture(scope="module")
def second(environment: TorchlessEnvironment) -> Path:
    """The prefix of the second torch, whose plug-in is installed in the environment's data folder."""
    prefix = unpacked_libtorch()
    installed = json.loads(
        environment.neuropod(
            "backends", "install", "torchscript", "--from-prefix", str(prefix), "--json"
        )
    )
    assert installed["built"]
    assert installed["framework_version"] != metadata.version("torch").partition("+")[0]
    return prefix


def folder_of_this_environment() -> str:
    """Where the plug-in against this environment's torch lies (`make setup` built it)."""
    from neuropod import _native

    return _native.user_backend_folder()


def test_the_packages_range_picks_the_torch_and_both_agree(
    environment: TorchlessEnvironment, second: Path
) -> None:
    both = {"NEUROPOD_BACKEND_PATH": folder_of_this_environment()}
    old, old_library = environment.infer("old.neuropod", **both)
    assert old_library.startswith(str(second))
    new, new_library = environment.infer("new.neuropod", **both)
    assert "/site-packages/torch/lib/" in new_library
    for name in ("scores", "best"):
        assert old[name].dtype == new[name].dtype
    any_version, library = environment.infer("any.neuropod")
    assert library == old_library  # the only one in the data folder
    np.testing.assert_allclose(any_version["scores"].sum(axis=1), 1, rtol=1e-6)


def test_the_same_package_gives_the_same_on_both(
    environment: TorchlessEnvironment, second: Path
) -> None:
    on_old, old_library = environment.infer("any.neuropod")
    assert old_library.startswith(str(second))
    only_new = {"XDG_DATA_HOME": str(Path(folder_of_this_environment()).parents[1])}
    on_new, new_library = environment.infer("any.neuropod", **only_new)
    assert "/site-packages/torch/lib/" in new_library
    np.testing.assert_allclose(on_old["scores"], on_new["scores"], rtol=1e-5, atol=1e-7)
    np.testing.assert_array_equal(on_old["best"], on_new["best"])


def test_the_list_marks_the_one_that_serves_a_package(
    environment: TorchlessEnvironment, second: Path
) -> None:
    both = {"NEUROPOD_BACKEND_PATH": folder_of_this_environment()}

    def serving(package: str) -> str:
        shown = environment.neuropod("backends", "list", "--for", package, "--json", **both)
        (one,) = [b for b in json.loads(shown)["backends"] if b["serves"]]
        return str(one["framework_version"])

    newest = metadata.version("torch")
    assert serving("any.neuropod") == newest
    assert serving("new.neuropod") == newest
    assert serving("old.neuropod") != newest
    shown = environment.neuropod("backends", "list", "--for", "old.neuropod", **both)
    assert "serves it" in shown
    assert "isn't in the range '<2.7'" in shown


def test_a_host_with_a_torch_of_its_own_is_told_why_the_second_is_not_for_it(
    environment: TorchlessEnvironment, second: Path
) -> None:
    listed = environment.neuropod("backends", "list", "--json", python=Path(sys.executable))
    (second_one,) = [b for b in json.loads(listed)["backends"] if b["platform"] == "torchscript"]
    assert not second_one["usable"]
    assert "this program's module 'torch' is the one in" in second_one["problem"]
    assert str(second) in second_one["problem"]


def contract_suite() -> Path:
    """The suite's program, which `make test` builds with the plug-in's own tests; links to no torch."""
    folder = ROOT / "build" / "plugins" / "torchscript"
    program = folder / "testing" / "torchscript_contract_suite"
    if not program.is_file():
        command = [sys.executable, str(ROOT / "tools" / "plugin_build.py"), "test"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    return program


@pytest.mark.parametrize("mode", [[], ["--out-of-process"]], ids=["in_process", "out_of_process"])
def test_the_second_torch_passes_the_contract_suite(
    environment: TorchlessEnvironment, second: Path, mode: list[str]
) -> None:
    program = contract_suite()
    fixtures = program.parents[1] / "fixtures"
    content = json.loads((fixtures / "fixtures.json").read_text())
    plugins = environment.data / "neuropod" / "backends"
    (manifest,) = plugins.glob("torchscript-*/backend.json")
    version = json.loads(manifest.read_text())["framework_version"]
    if tuple(map(int, version.split(".")[:2])) < (2, 3):
        dtypes = content["capabilities"]["dtypes"]
        content["capabilities"]["dtypes"] = [d for d in dtypes if d not in WIDE_UNSIGNED]
        content["reasons"]["dtypes"] = "torch has uint16, uint32 and uint64 since 2.3"
    (fixtures / "second.json").write_text(json.dumps(content))
    done = subprocess.run(
        [str(program), "--fixtures", str(fixtures / "second.json"), *mode],
        env=os.environ | {"NEUROPOD_BACKEND_PATH": str(manifest.parent)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-6000:]
    assert "[  PASSED  ]" in done.stdout


def test_pip_makes_a_private_torch_and_remove_takes_it_away(
    environment: TorchlessEnvironment, second: Path
) -> None:
    version = metadata.version("torch").partition("+")[0]
    environment.neuropod("backends", "install", "torchscript", "--framework-version", version)
    private = environment.data / "neuropod" / "environments" / f"torch-{version}"
    outputs, library = environment.infer("any.neuropod")
    assert library.startswith(str(private))
    assert outputs["scores"].shape == (5, 4)

    environment.neuropod("backends", "remove", "torchscript", "--framework-version", version)
    assert not private.exists()
    _, library = environment.infer("any.neuropod")
    assert library.startswith(str(second))


def test_one_program_runs_both_at_once_in_workers(
    environment: TorchlessEnvironment, second: Path
) -> None:
    environment.work.joinpath("run_both.py").write_text(RUN_BOTH)
    (plugin,) = (environment.data / "neuropod" / "backends").glob("torchscript-*")
    both = {"NEUROPOD_BACKEND_PATH": folder_of_this_environment()}
    printed = environment.run(
        "run_both.py", "x.npy", str(plugin), python=Path(sys.executable), **both
    )
    conflict, old_library, new_library = printed.splitlines()
    assert conflict == "conflict True"
    assert old_library.startswith(str(second))
    assert "/site-packages/torch/lib/" in new_library


def test_one_cpp_program_runs_both_at_once_in_workers(
    environment: TorchlessEnvironment, second: Path, prefix: Path, libdir: Path
) -> None:
    source, program = environment.work / "run_both.cc", environment.work / "run_both"
    source.write_text(RUN_BOTH_IN_CPP)
    includes = ["-isystem", prefix / "include", "-L", libdir, f"-Wl,-rpath,{libdir}"]
    run(["g++", "-std=c++17", *WARNINGS, source, "-o", program, *includes, "-lneuropod"])
    (plugin,) = (environment.data / "neuropod" / "backends").glob("torchscript-*")
    printed = run(
        [program, plugin],
        env=environment.environment | {"NEUROPOD_BACKEND_PATH": folder_of_this_environment()},
        cwd=environment.work,
    )
    old_library, new_library, own_library = printed.splitlines()
    assert old_library.startswith(str(second))
    assert "/site-packages/torch/lib/" in new_library
    assert own_library == new_library
