"""The wheels of `make wheels`, on a machine without compiler, CMake or git.

The machine is a root folder that holds a Python and the distributions that the wheels require, copied
from this environment (bare_root.py): fetching them once more would show nothing new. pip installs the
wheels in there without an index, so it checks that nothing else is required.
"""

import email
import json
import re
import shutil
import subprocess
import sys
import zipfile
from email.message import Message
from importlib import metadata
from pathlib import Path

import pytest
from addition_programs import PACKAGE_WITH_TEST_DATA, RUN
from bare_root import BareRoot
from packaging.requirements import Requirement
from wheel_programs import ECHO, EVERYDAY, PROGRAM

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
TOOLS = ("gcc", "g++", "cc", "c++", "clang", "cmake", "ninja", "make", "git", "ld", "sh", "bash")


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Wheels by the names of their distributions."""
    target = tmp_path_factory.mktemp("dist")
    run_here([sys.executable, ROOT / "tools" / "build_wheels.py", "--to", target])
    return {path.name.partition("-")[0]: path for path in target.glob("*.whl")}


@pytest.fixture(scope="module")
def bare_root(wheels: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> BareRoot:
    """A root with the core's wheel and what it requires."""
    root = BareRoot(tmp_path_factory.mktemp("root"))
    names = [r.name for r in requirements(wheels["neuropod"]) if not r.marker]
    root.add_distributions(["pip", *names])
    install(root, wheels["neuropod"])
    return root


@pytest.fixture(scope="module")
def torch_root(bare_root: BareRoot, wheels: dict[str, Path]) -> BareRoot:
    """The same with torch, the TorchScript plug-in's wheel and a package made in there."""
    bare_root.add_distributions(["torch"])
    install(bare_root, wheels["neuropod_backend_torchscript"])
    python(bare_root, PACKAGE_WITH_TEST_DATA)
    return bare_root


def run_here(command: list[str | Path]) -> str:
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def run(root: BareRoot, *command: str) -> str:
    done = root.run(*command)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def python(root: BareRoot, code: str) -> str:
    """Runs a file: TorchScript reads the source of what it compiles."""
    root.path("/home/program.py").write_text(code)
    return run(root, str(root.python), "program.py")


def install(root: BareRoot, wheel: Path) -> None:
    inside = root.path("/tmp") / wheel.name
    inside.write_bytes(wheel.read_bytes())
    options = (
        "--no-index",
        "--no-compile",
        "--disable-pip-version-check",
        "--root-user-action=ignore",
    )
    run(root, str(root.python), "-m", "pip", "install", "-q", *options, f"/tmp/{wheel.name}")


def metadata_of(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        return email.message_from_bytes(archive.read(name))


def requirements(wheel: Path) -> list[Requirement]:
    return [Requirement(text) for text in metadata_of(wheel).get_all("Requires-Dist") or ()]


def is_pure(distribution: str) -> bool:
    files = metadata.distribution(distribution).files or ()
    return not any(".so" in Path(file.name).suffixes for file in files)


def test_the_core_needs_numpy_and_pure_python_only(wheels: dict[str, Path]) -> None:
    names = {r.name for r in requirements(wheels["neuropod"]) if r.marker is None}
    assert "numpy" in names
    assert [name for name in names - {"numpy"} if not is_pure(name)] == []


def test_tags_say_the_c_library(wheels: dict[str, Path]) -> None:
    assert set(wheels) == {"neuropod", "neuropod_backend_torchscript"}
    for wheel in wheels.values():
        assert re.search(r"-manylinux_2_\d+_x86_64\.whl$", wheel.name), wheel.name


def test_libneuropod_keeps_its_name_and_no_library_is_added(wheels: dict[str, Path]) -> None:
    with zipfile.ZipFile(wheels["neuropod"]) as archive:
        libraries = [n for n in archive.namelist() if ".so" in Path(n).suffixes]
    assert sorted(libraries) == [
        f"neuropod/_native.cpython-3{sys.version_info[1]}-x86_64-linux-gnu.so",
        "neuropod/lib/libneuropod.so.1",
        "neuropod/lib/neuropod/backends/echo/libecho.so",
    ]


def test_no_wheel_names_a_path_of_this_machine(wheels: dict[str, Path]) -> None:
    for wheel in wheels.values():
        with zipfile.ZipFile(wheel) as archive:
            for name in archive.namelist():
                content = archive.read(name)
                for folder in (ROOT, Path(sys.prefix)):
                    assert str(folder).encode() not in content, f"{wheel.name}: {name}"


def test_the_plug_ins_wheel_requires_that_very_framework(wheels: dict[str, Path]) -> None:
    wheel = wheels["neuropod_backend_torchscript"]
    wanted = {r.name: str(r.specifier) for r in requirements(wheel)}
    core = metadata.version("neuropod")
    assert wanted == {"neuropod": f"~={core}", "torch": f"=={metadata.version('torch')}"}
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (n for n in archive.namelist() if n.endswith("/backend.json"))
        manifest = json.loads(archive.read(name))
    assert manifest["libraries_relative_to"] == "python_module"
    assert all(path.startswith("lib/lib") for path in manifest["libraries"])
    assert wheel.stat().st_size < 2_000_000


def test_the_machine_has_no_tools(bare_root: BareRoot) -> None:
    code = f"import shutil; print([t for t in {TOOLS!r} if shutil.which(t)])"
    assert python(bare_root, code) == "[]\n"
    assert not bare_root.path("/usr/include").exists()


def test_the_core_alone_runs_without_a_framework(bare_root: BareRoot) -> None:
    assert python(bare_root, ECHO) == "[1.0, 1.0]\n"
    listed = json.loads(run(bare_root, "neuropod", "backends", "list", "--json"))
    assert "echo" in {b["platform"] for b in listed["backends"] if b["usable"]}
    assert (
        json.loads(run(bare_root, "neuropod", "info", "echo.neuropod", "--json"))["name"] == "echo"
    )


def test_packages_are_evaluated_and_compared(bare_root: BareRoot) -> None:
    package = bare_root.path("/home/echo.neuropod")
    if not package.exists():
        python(bare_root, ECHO)
    shutil.copytree(package, package.with_name("same.neuropod"))
    bare_root.path("/home/data.csv").write_text("x,right\n1,1\n2,4\n")
    options = (
        "echo.neuropod",
        "same.neuropod",
        "--data",
        "data.csv",
        "--json",
        "--html",
        "page.html",
    )
    found = json.loads(run(bare_root, "neuropod", "evaluate", *options, "-m", "mae"))
    assert [package["metrics"]["mae"]["value"] for package in found["packages"]] == [1, 1]
    assert "<svg" in bare_root.path("/home/page.html").read_text(encoding="utf-8")
    assert json.loads(run(bare_root, "neuropod", "compare", *options))["agrees"]


def test_problem_apis_swaps_metrics_logs_and_signatures_work(bare_root: BareRoot) -> None:
    assert python(bare_root, EVERYDAY) == "refused\n"
    for code, *command in (
        (0, "api", "check", "api.json", "first.neuropod", "second.neuropod"),
        (1, "api", "check", "api.json", "other.neuropod"),
        (0, "api", "diff", "api.json", "other.neuropod"),
        (3, "verify", "second.neuropod", "--key", "b.public.pem"),
        (3, "info", "missing.neuropod"),
        (2, "backends", "remove", "torchscript"),
    ):
        assert bare_root.run("neuropod", *command).returncode == code, command


def test_what_needs_a_compiler_says_so(bare_root: BareRoot) -> None:
    done = bare_root.run("neuropod", "backends", "install", "torchscript")
    assert done.returncode == 4, done.stderr
    assert "torch" in done.stderr and "Traceback" not in done.stderr


def test_evaluation_is_a_gate(bare_root: BareRoot) -> None:
    code = ECHO.replace("echo.neuropod", "half.neuropod").replace(
        '{"op": "identity", "input": "x"}', '{"op": "sum", "inputs": ["x", "x"]}'
    )
    python(bare_root, code)
    bare_root.path("/home/gate.csv").write_text("x,right\n1,1\n2,2\n")
    options = ("--data", "gate.csv", "-m", "mae", "--baseline", "base.neuropod")
    python(bare_root, ECHO.replace("echo.neuropod", "base.neuropod"))
    done = bare_root.run("neuropod", "evaluate", "half.neuropod", *options)
    assert done.returncode == 1
    assert "FAILED" in done.stdout


def test_a_packaged_model_runs(torch_root: BareRoot) -> None:
    assert python(torch_root, RUN) == "[0.0, 2.0, 4.0]\n"


def test_the_command_line_runs_it(torch_root: BareRoot) -> None:
    listed = json.loads(run(torch_root, "neuropod", "backends", "list", "--json"))
    (plugin,) = (b for b in listed["backends"] if b["platform"] == "torchscript")
    assert plugin["usable"], plugin["problem"]
    assert plugin["source"] == "beside the library"
    info = json.loads(run(torch_root, "neuropod", "info", "addition.neuropod", "--json"))
    assert info["platform"] == "torchscript"
    torch_root.path("/home/inputs.json").write_text('{"x": [1, 2], "y": [3, 4]}')
    printed = run(torch_root, "neuropod", "run", "addition.neuropod", "-i", "inputs.json", "--json")
    assert json.loads(printed)["outputs"]["out"]["data"] == [4.0, 6.0]


def test_the_other_commands_work_there(torch_root: BareRoot) -> None:
    package = "addition.neuropod"
    for command in (
        ("--version",),
        ("test", package),
        ("bench", package, "--random", "--seconds", "0.2"),
        ("api", "show", package),
        ("keygen", "key"),
        ("sign", package, "--key", "key.private.pem"),
        ("verify", package, "--key", "key.public.pem"),
        ("doctor",),
        ("completion", "bash"),
    ):
        run(torch_root, "neuropod", *command)


def test_a_cpp_program_finds_the_wheels_plug_in(torch_root: BareRoot, tmp_path: Path) -> None:
    """Compiled here against the wheel's headers; it finds torch beside the plug-in, without Python."""
    prefix = torch_root.path(torch_root.site) / "neuropod"
    (tmp_path / "main.cc").write_text(PROGRAM)
    program = tmp_path / "program"
    library = prefix / "lib" / "libneuropod.so.1"
    run_here(["g++", "-std=c++17", tmp_path / "main.cc", f"-I{prefix}/include", library,
              f"-Wl,-rpath,{library.parent}", "-o", program])  # fmt: skip
    assert run_here([program, torch_root.path("/home/addition.neuropod")]) == "4\n"


def test_another_build_of_the_framework_is_refused(torch_root: BareRoot) -> None:
    """The plug-in of a wheel for another torch: the same manifest with other build-ids."""
    (manifest,) = torch_root.path(torch_root.site).glob(
        "neuropod/lib/neuropod/backends/torchscript-*/backend.json"
    )
    content = json.loads(manifest.read_text())
    before = manifest.read_bytes()
    content["library_build_ids"][0] = "00ff"
    manifest.unlink()  # it may be a hard link
    manifest.write_text(json.dumps(content))
    try:
        done = torch_root.run("neuropod", "run", "addition.neuropod")
    finally:
        manifest.write_bytes(before)
    assert done.returncode == 4
    assert "compiled against another build of torch" in done.stderr
    assert "expected build-id 00ff" in done.stderr
    assert "neuropod backends install torchscript" in done.stderr
