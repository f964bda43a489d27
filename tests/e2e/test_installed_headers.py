"""Installed headers: they compile alone for every user, and bring nothing that isn't ours."""

import os
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from installed_prefix import WARNINGS, run

COMPILERS = ("g++", "clang++")
STANDARDS = ("c++17", "c++20")
# What applications switch on beyond the usual.
MORE_WARNINGS = (
    *("-Wshadow", "-Wconversion", "-Wold-style-cast", "-Wnon-virtual-dtor", "-Woverloaded-virtual"),
)
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
# Folders below /usr/include that belong to the compiler, the C library or the kernel.
SYSTEM_FOLDERS = {"c++", "x86_64-linux-gnu", "aarch64-linux-gnu", "linux", "asm", "asm-generic"}
# What applications include by themselves, beside neuropod/*.hh and neuropod/{internal,conversions}/.
ENTRY_HEADERS = {"neuropod/base/logging.hh", "neuropod/serialization/serialization.hh"}


@pytest.mark.slow
@pytest.mark.parametrize("compiler", COMPILERS)
def test_each_header_compiles_alone(
    compiler: str, prefix: Path, headers: list[str], tmp_path: Path
) -> None:
    assert "neuropod/neuropod.hh" in headers
    eigen = run(["pkg-config", "--cflags", "eigen3"]).replace("-I", "-isystem").split()

    def compile_alone(header: str, standard: str) -> str:
        source = tmp_path / f"{header.replace('/', '_')}_{standard}.cc"
        source.write_text(f"#include <{header}>\n#include <{header}>\n")
        extra = eigen if header == EIGEN_HEADER else []
        done = subprocess.run(
            [compiler, f"-std={standard}", "-fsyntax-only", *WARNINGS, *MORE_WARNINGS,
             f"-I{prefix}/include", *extra, str(source)],
            capture_output=True, text=True, check=False)  # fmt: skip
        return "" if done.returncode == 0 else f"{header}, {compiler} {standard}:\n{done.stderr}"

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


def test_only_headers_that_somebody_includes_are_installed(
    prefix: Path, headers: list[str]
) -> None:
    """Entry points, what plug-ins and the contract suite include, and what those include."""
    include = prefix / "include"
    entries = {
        header
        for header in headers
        if re.fullmatch(r"neuropod/((internal|conversions)/)?\w+\.hh", header)
    }
    sources = [p for p in (prefix / "share").rglob("*") if p.suffix in (".cc", ".hh")]
    todo = [*sources, *(include / header for header in entries | ENTRY_HEADERS)]
    reached = entries | ENTRY_HEADERS
    while todo:
        text = todo.pop().read_text()
        for name in re.findall(r'#include ["<](neuropod/[^">]+)[">]', text):
            if name not in reached and name in headers:
                reached.add(name)
                todo.append(include / name)
    assert set(headers) - reached == set()
