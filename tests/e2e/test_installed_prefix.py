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
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BUILD = Path(os.environ.get("NEUROPOD_BUILD_DIR", ROOT / "build" / "release"))
EXAMPLES = ROOT / "examples"

WARNINGS = ("-Wall", "-Wextra", "-Wpedantic", "-Werror")
STANDARDS = ("c++17", "c++20")
# The one header that includes a third-party one, for applications that have it anyway.
EIGEN_HEADER = "neuropod/conversions/eigen.hh"
# Macros that applications knew before ours were prefixed.
OLD_MACROS = {
    "FOR_EACH_TYPE_MAPPING_EXCEPT_STRING",
    "FOR_EACH_TYPE_MAPPING_INCLUDING_STRING",
    "MAKE_SERIALIZABLE",
    "REGISTER_NEUROPOD_BACKEND",
    "SET_SERIALIZE_TAG",
}
BASE_LIBRARIES = {"libc.so.6", "libm.so.6", "libstdc++.so.6", "libgcc_s.so.1"}
# Folders below /usr/include that belong to the compiler, the C library or the kernel.
SYSTEM_FOLDERS = {"c++", "x86_64-linux-gnu", "aarch64-linux-gnu", "linux", "asm", "asm-generic"}


def run(
    command: Sequence[str | Path], *, env: dict[str, str] | None = None, cwd: Path | None = None
) -> str:
    """Standard output of a command that must succeed."""
    done = subprocess.run(
        [str(part) for part in command],
        capture_output=True,
        text=True,
        env=None if env is None else os.environ | env,
        cwd=cwd,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    assert (BUILD / "lib").is_dir(), f"{BUILD} isn't built; `make setup` builds it"
    path = tmp_path_factory.mktemp("prefix with a space")
    run(["cmake", "--install", BUILD, "--prefix", path])
    return path


@pytest.fixture(scope="module")
def libdir(prefix: Path) -> Path:
    (library,) = prefix.glob("lib*/**/libneuropod.so")
    return library.parent


@pytest.fixture(scope="module")
def headers(prefix: Path) -> list[str]:
    include = prefix / "include"
    return sorted(str(path.relative_to(include)) for path in include.rglob("*.hh"))


def check_output_of_example(program: Path) -> None:
    env = {"NEUROPOD_BACKEND_PATH": "", "XDG_DATA_HOME": "/nowhere"}
    assert run([program, EXAMPLES / "cpp" / "models" / "addition"], env=env) == "ok\n"


def test_the_example_builds_with_cmake(prefix: Path, tmp_path: Path) -> None:
    run(["cmake", "-S", EXAMPLES / "cpp", "-B", tmp_path, "-G", "Ninja",
         f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_CXX_FLAGS=" + " ".join(WARNINGS)])  # fmt: skip
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


@pytest.mark.slow
def test_each_header_compiles_alone(prefix: Path, headers: list[str], tmp_path: Path) -> None:
    assert "neuropod/neuropod.hh" in headers
    eigen = run(["pkg-config", "--cflags", "eigen3"]).replace("-I", "-isystem").split()

    def compile_alone(header: str, standard: str) -> str:
        source = tmp_path / f"{header.replace('/', '_')}_{standard}.cc"
        source.write_text(f"#include <{header}>\n#include <{header}>\n")
        extra = eigen if header == EIGEN_HEADER else []
        done = subprocess.run(
            ["g++", f"-std={standard}", "-fsyntax-only", *WARNINGS, f"-I{prefix}/include", *extra,
             str(source)],
            capture_output=True, text=True, check=False)  # fmt: skip
        return "" if done.returncode == 0 else f"{header}, {standard}:\n{done.stderr}"

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        pairs = [(header, standard) for header in headers for standard in STANDARDS]
        problems = list(pool.map(lambda pair: compile_alone(*pair), pairs))
    assert not "".join(problems), "\n".join(filter(None, problems))


def test_headers_define_no_bare_macro(prefix: Path, headers: list[str]) -> None:
    bare = {}
    for header in headers:
        text = (prefix / "include" / header).read_text()
        for name in re.findall(r"^\s*#\s*define\s+(\w+)", text, re.MULTILINE):
            if not name.startswith("NEUROPOD_") and name not in OLD_MACROS:
                bare[name] = header
    assert not bare


def test_headers_include_no_third_party(prefix: Path, headers: list[str], tmp_path: Path) -> None:
    source = tmp_path / "all.cc"
    source.write_text("".join(f"#include <{h}>\n" for h in headers if h != EIGEN_HEADER))
    rule = run(["g++", "-std=c++20", "-M", f"-I{prefix}/include", source])
    # A make rule: spaces in names are escaped, long lines are continued.
    files = re.split(r"(?<!\\)\s+", rule.replace("\\\n", " ").partition(":")[2].strip())
    foreign = []
    for path in (Path(name.replace("\\ ", " ")) for name in files):
        if path == source or path.is_relative_to(prefix) or "/gcc/" in str(path):
            continue
        assert path.is_relative_to("/usr/include"), path
        folders = path.relative_to("/usr/include").parts[:-1]
        belongs_to_system = folders[0] in SYSTEM_FOLDERS if folders else is_in_libc(path)
        if not belongs_to_system:
            foreign.append(str(path))
    assert not foreign


def is_in_libc(header: Path) -> bool:
    if shutil.which("dpkg-query") is None:
        return header.name not in {"zlib.h", "zconf.h"}
    owner = run(["dpkg-query", "-S", header]).partition(":")[0]
    return owner in {"libc6-dev", "linux-libc-dev"}


def test_headers_name_no_third_party(prefix: Path, headers: list[str]) -> None:
    names = re.compile(r"\b(fmt|spdlog|nlohmann|EVP_\w+|unz\w*|z_stream|testing)\s*::|\bboost\b")
    found = {h: names.findall((prefix / "include" / h).read_text()) for h in headers}
    assert not {header: matches for header, matches in found.items() if matches}


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


def test_the_prefix_may_move(prefix: Path, tmp_path: Path) -> None:
    moved = tmp_path / "moved"
    shutil.copytree(prefix, moved, symlinks=True)
    project = tmp_path / "project"
    project.mkdir()
    (project / "main.cc").write_text(
        "#include <neuropod/neuropod.hh>\n"
        "int main() { return *neuropod::library_version() == 0; }\n"
    )
    (project / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(moved CXX)\n"
        "find_package(Neuropod 0.1 CONFIG REQUIRED)\nadd_executable(moved main.cc)\n"
        "target_link_libraries(moved PRIVATE Neuropod::neuropod)\n"
    )
    run(["cmake", "-S", project, "-B", project / "build", "-G", "Ninja",
         f"-DCMAKE_PREFIX_PATH={moved}"])  # fmt: skip
    run(["cmake", "--build", project / "build"])
    run([project / "build" / "moved"])


@pytest.fixture(scope="module")
def matrix_build(prefix: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    build = tmp_path_factory.mktemp("matrix")
    run(["cmake", "-S", EXAMPLES / "backend", "-B", build, "-G", "Ninja",
         f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_BUILD_TYPE=Debug",
         "-DCMAKE_CXX_FLAGS=-O0"])  # fmt: skip
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
