"""What the plug-in's CMake project says about a torch that it can't be built against."""

import subprocess
from pathlib import Path

import pytest

from neuropod.backend_installer.sources import find_sources
from neuropod.backend_installer.toolchain import find_toolchain


def configure(torch_folder: Path, build: Path) -> str:
    """Configures the project; returns the text of its failure."""
    sources = find_sources("torchscript")
    toolchain = find_toolchain()
    done = subprocess.run(
        [
            *(toolchain.cmake, "-S", sources.folder, "-B", build, "-G", toolchain.generator),
            f"-DCMAKE_PREFIX_PATH={sources.prefix}",
            f"-DFRAMEWORK_MODULE_DIR={torch_folder}",
            "-DFRAMEWORK_VERSION=2.4.0",
        ],
        env=toolchain.environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode != 0
    return " ".join(done.stderr.split())


@pytest.fixture
def torch_folder(tmp_path: Path) -> Path:
    """A folder with the files of a torch that was built with the old C++ ABI."""
    folder = tmp_path / "torch"
    (folder / "include/torch").mkdir(parents=True)
    (folder / "include/torch/script.h").touch()
    (folder / "lib").mkdir()
    source = tmp_path / "c10.cc"
    source.write_text("#include <string>\nnamespace c10 { void name(const std::string&) {} }\n")
    for name in ("c10", "torch_cpu", "torch"):
        subprocess.run(
            [
                *("g++", "-shared", "-fPIC", "-D_GLIBCXX_USE_CXX11_ABI=0"),
                *(source, "-o", folder / f"lib/lib{name}.so"),
            ],
            check=True,
        )
    return folder


def test_the_old_abi_is_refused_with_its_reason(torch_folder: Path, tmp_path: Path) -> None:
    text = configure(torch_folder, tmp_path / "build")
    assert "torch 2.4.0 was built with the old C++ ABI" in text
    assert "pip install 'torch>=2.6'" in text


def test_a_torch_without_headers_is_named(torch_folder: Path, tmp_path: Path) -> None:
    (torch_folder / "include/torch/script.h").unlink()
    assert f"no headers of torch in {torch_folder}/include" in configure(
        torch_folder, tmp_path / "build"
    )


def test_an_incomplete_torch_is_named(torch_folder: Path, tmp_path: Path) -> None:
    (torch_folder / "lib/libtorch_cpu.so").unlink()
    assert "libtorch_cpu.so doesn't exist" in configure(torch_folder, tmp_path / "build")
