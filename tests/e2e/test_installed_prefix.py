"""An installed Neuropod, used the way its users do: headers, CMake package, pkg-config, plug-ins.

The release build is installed into a temporary prefix; nothing here looks into the source tree's
`source/` or the build's own targets.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from installed_prefix import (
    BUILD,
    EXAMPLES,
    ROOT,
    WARNINGS,
    check_output_of_example,
    configure,
    run,
)

BASE_LIBRARIES = {"libc.so.6", "libm.so.6", "libstdc++.so.6", "libgcc_s.so.1"}

FIND_PROJECT = """
cmake_minimum_required(VERSION 3.25)
project(found CXX)
find_package(Neuropod {request} CONFIG REQUIRED)
add_executable(found main.cc)
target_link_libraries(found PRIVATE {target})
"""
MAIN = """
#include <{header}>
#include <neuropod/neuropod.hh>
int main() {{ return *neuropod::library_version() == 0; }}
"""


def test_the_example_builds_with_cmake(prefix: Path, tmp_path: Path) -> None:
    flags = " ".join(WARNINGS)
    configure(
        EXAMPLES / "cpp", tmp_path, f"-DCMAKE_PREFIX_PATH={prefix}", f"-DCMAKE_CXX_FLAGS={flags}"
    )
    run(["cmake", "--build", tmp_path])
    check_output_of_example(tmp_path / "neuropod_every_call")


def test_the_example_builds_with_pkg_config(libdir: Path, tmp_path: Path) -> None:
    env = {"PKG_CONFIG_PATH": str(libdir / "pkgconfig")}
    flags = run(["pkg-config", "--cflags", "--libs", "neuropod"], env=env)
    version = run(["pkg-config", "--modversion", "neuropod"], env=env)
    assert re.fullmatch(r"\d+\.\d+\.\d+\n", version)
    program = tmp_path / "every_call"
    # Through a shell, as people do: it splits and unquotes what pkg-config prints.
    command = f"g++ -std=c++17 -o '{program}' '{EXAMPLES}/cpp/every_call.cc' {flags.strip()}"
    run(["sh", "-c", f"{command} '-Wl,-rpath,{libdir}'"])
    check_output_of_example(program)


def shared_libraries(libdir: Path) -> list[Path]:
    return [libdir / "libneuropod.so", libdir / "neuropod" / "backends" / "echo" / "libecho.so"]


def test_libraries_need_only_the_base_system(libdir: Path) -> None:
    for library in shared_libraries(libdir):
        dynamic = run(["readelf", "-d", library])
        needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic))
        assert "libstdc++.so.6" in needed
        own = {"libneuropod.so.1"} if library.name == "libecho.so" else set()
        loaders = {name for name in needed if name.startswith("ld-linux")}
        assert needed <= BASE_LIBRARIES | own | loaders
        assert not re.search(r"\((RPATH|RUNPATH)\)", dynamic)


def test_libraries_export_only_our_names(libdir: Path) -> None:
    for library in shared_libraries(libdir):
        foreign = []
        lines = run(["nm", "-D", "--defined-only", "-C", library]).splitlines()
        for line in lines:
            match = re.match(r"[0-9a-f]+ (\w) (.*)", line)
            assert match, line
            kind, name = match.groups()
            # The standard library's templates are weak, or unique where they hold statics.
            of_standard_library = kind in "VWu" and re.search(r"\bstd::|__gnu_cxx::", name)
            ours = "neuropod::" in name or of_standard_library
            if not ours or re.search(r"\b(fmt|nlohmann|spdlog)::", name):
                foreign.append(line)
        assert not foreign
        assert lines or library.name == "libecho.so"


def test_no_path_of_this_machine_is_installed(prefix: Path) -> None:
    for path in prefix.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            for folder in (ROOT, BUILD):
                assert str(folder).encode() not in content, f"{path} names {folder}"


def write_project(folder: Path, request: str, target: str, header: str) -> Path:
    """A project that finds Neuropod by find_package(Neuropod `request`) and links `target`."""
    folder.mkdir()
    (folder / "main.cc").write_text(MAIN.format(header=header))
    (folder / "CMakeLists.txt").write_text(FIND_PROJECT.format(request=request, target=target))
    return folder


def build_and_run(project: Path, prefix: Path) -> None:
    configure(project, project / "build", f"-DCMAKE_PREFIX_PATH={prefix}")
    run(["cmake", "--build", project / "build"])
    run([project / "build" / "found"])


def test_the_prefix_may_move(prefix: Path, tmp_path: Path) -> None:
    moved = tmp_path / "moved"
    shutil.copytree(prefix, moved, symlinks=True)
    project = write_project(
        tmp_path / "project", "1.0", "Neuropod::neuropod", "neuropod/options.hh"
    )
    build_and_run(project, moved)


def test_eigen_is_a_target_of_its_own(prefix: Path, tmp_path: Path) -> None:
    header = "neuropod/conversions/eigen.hh"
    project = write_project(tmp_path / "project", "1.0", "Neuropod::eigen", header)
    build_and_run(project, prefix)


def test_a_required_eigen_that_is_missing_is_named(prefix: Path, tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(p CXX)\n"
        "find_package(Neuropod CONFIG REQUIRED COMPONENTS eigen)\n"
    )
    done = subprocess.run(
        ["cmake", "-S", project, "-B", project / "build", "-G", "Ninja",
         f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_DISABLE_FIND_PACKAGE_Eigen3=ON"],
        capture_output=True, text=True, check=False)  # fmt: skip
    assert done.returncode != 0
    assert "Neuropod::eigen needs Eigen 3" in " ".join(done.stderr.split())


@pytest.mark.parametrize(
    ("request_", "found"),
    [("1", True), ("1.0", True), ("1.9", False), ("2", False), ("0.9", False)],
)
def test_any_release_of_the_same_major_version_is_taken(
    request_: str, found: bool, libdir: Path, tmp_path: Path
) -> None:
    """The version file alone, as find_package() runs it."""
    (script := tmp_path / "find.cmake").write_text(
        f"set(CMAKE_SIZEOF_VOID_P 8)\nset(PACKAGE_FIND_VERSION {request_})\n"
        f"set(PACKAGE_FIND_VERSION_MAJOR {request_.partition('.')[0]})\n"
        f'include("{libdir}/cmake/Neuropod/NeuropodConfigVersion.cmake")\n'
        'message(STATUS "compatible: ${PACKAGE_VERSION_COMPATIBLE}")\n'
    )
    printed = run(["cmake", "-P", script])
    assert f"compatible: {'TRUE' if found else 'FALSE'}" in printed


@pytest.fixture(scope="module")
def matrix_build(prefix: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    build = tmp_path_factory.mktemp("matrix")
    options = (f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_CXX_FLAGS=-O0")
    configure(EXAMPLES / "backend", build, *options)
    run(["cmake", "--build", build])
    return build


@pytest.fixture(scope="module")
def matrix_packager(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment in which Python finds the packager's distribution."""
    source = tmp_path_factory.mktemp("source") / "python"
    shutil.copytree(EXAMPLES / "backend" / "python", source)  # building leaves files beside it
    target = tmp_path_factory.mktemp("site")
    run([sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation",
         "--target", target, source])  # fmt: skip
    return {"PYTHONPATH": os.pathsep.join(filter(None, [str(target), os.getenv("PYTHONPATH")]))}


@pytest.mark.slow
def test_a_backend_from_outside_passes_the_contract_suite(
    matrix_build: Path, matrix_packager: dict[str, str]
) -> None:
    fixtures = matrix_build / "fixtures"
    run([sys.executable, EXAMPLES / "backend" / "make_fixtures.py", fixtures], env=matrix_packager)
    run(["ctest", "--test-dir", matrix_build, "--output-on-failure", "--no-tests=error"])

    # Each limit has a reason: without it the suite fails.
    content = json.loads((fixtures / "fixtures.json").read_text())
    del content["reasons"]["zero_copy_out"]
    unexplained = fixtures / "unexplained.json"
    unexplained.write_text(json.dumps(content))
    done = subprocess.run(
        [matrix_build / "matrix_contract_suite", "--fixtures", unexplained],
        env=os.environ | {"NEUROPOD_BACKEND_PATH": str(matrix_build / "lib/neuropod/backends")},
        capture_output=True, text=True, check=False)  # fmt: skip
    assert done.returncode != 0
    assert "denies 'zero_copy_out' and doesn't say why" in done.stdout


@pytest.mark.slow
def test_a_packager_from_outside_packages_and_python_runs_it(
    matrix_build: Path, matrix_packager: dict[str, str], tmp_path: Path
) -> None:
    script = tmp_path / "package_and_run.py"
    script.write_text(
        "import sys\n"
        "import numpy as np\n"
        "from neuropod import load_neuropod\n"
        "from neuropod.packagers import create_matrix_neuropod\n"
        "x = np.array([1, 1], dtype=np.float32)\n"
        "create_matrix_neuropod(\n"
        "    neuropod_path=sys.argv[1], model_name='rotation',\n"
        "    outputs={'y': {'x': [[1, 2], [3, 4]]}},\n"
        "    input_spec=[{'name': 'x', 'dtype': 'float32', 'shape': (2,)}],\n"
        "    output_spec=[{'name': 'y', 'dtype': 'float32', 'shape': (2,)}],\n"
        "    test_input_data={'x': x}, test_expected_out={'y': np.array([3, 7], np.float32)},\n"
        ")\n"
        "with load_neuropod(sys.argv[1]) as model:\n"
        "    print(model.platform, model.infer({'x': x})['y'].tolist())\n"
    )
    env = matrix_packager | {"NEUROPOD_BACKEND_PATH": str(matrix_build / "lib/neuropod/backends")}
    package = tmp_path / "rotation.neuropod"
    assert run([sys.executable, script, package], env=env) == "matrix [3.0, 7.0]\n"
