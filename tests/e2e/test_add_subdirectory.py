"""Neuropod as a part of another CMake project, by add_subdirectory(): it builds, runs, and leaves its
parent as it was."""

import json
from pathlib import Path

import pytest
from installed_prefix import EXAMPLES, ROOT, configure, run

pytestmark = pytest.mark.slow

PARENT = """
cmake_minimum_required(VERSION 3.25)
project(parent LANGUAGES C CXX)
enable_testing()
set(settings @SETTINGS@)
foreach(setting IN LISTS settings)
  set(before_${setting} "${${setting}}")
endforeach()
add_subdirectory("@NEUROPOD@" neuropod)
foreach(setting IN LISTS settings)
  if(NOT "${${setting}}" STREQUAL "${before_${setting}}")
    file(APPEND "${CMAKE_BINARY_DIR}/changed.txt" "${setting}: ${${setting}}\n")
  endif()
endforeach()

add_executable(application main.cc)
target_link_libraries(application PRIVATE Neuropod::neuropod)
target_compile_options(application PRIVATE -Wall -Wextra -Werror)
add_executable(with_eigen eigen.cc)
target_link_libraries(with_eigen PRIVATE Neuropod::eigen)

# Its own plug-in, and a target whose name is also a plug-in of Neuropod's.
add_custom_target(echo)
neuropod_add_backend(reflection PLATFORM reflection FRAMEWORK none FRAMEWORK_VERSION 1.0.0
                     SOURCES plugin.cc)
install(TARGETS application)
"""

SETTINGS = (
    "BUILD_SHARED_LIBS CMAKE_ARCHIVE_OUTPUT_DIRECTORY CMAKE_BUILD_TYPE CMAKE_CXX_COMPILER_LAUNCHER "
    "CMAKE_CXX_EXTENSIONS CMAKE_CXX_FLAGS CMAKE_CXX_FLAGS_RELEASE CMAKE_CXX_STANDARD "
    "CMAKE_CXX_STANDARD_REQUIRED CMAKE_CXX_VISIBILITY_PRESET CMAKE_INSTALL_DEFAULT_COMPONENT_NAME "
    "CMAKE_INSTALL_PREFIX CMAKE_LIBRARY_OUTPUT_DIRECTORY CMAKE_MODULE_PATH "
    "CMAKE_POSITION_INDEPENDENT_CODE CMAKE_RUNTIME_OUTPUT_DIRECTORY CMAKE_VISIBILITY_INLINES_HIDDEN"
)

PLUGIN = """
#include <neuropod/backends/neuropod_backend.hh>
#include <neuropod/core/generic_tensor.hh>
namespace {
class Reflection
    : public neuropod::NeuropodBackendWithDefaultAllocator<neuropod::GenericNeuropodTensor> {
 public:
  using NeuropodBackendWithDefaultAllocator::NeuropodBackendWithDefaultAllocator;
 protected:
  void load_model_internal() override {}
};
REGISTER_NEUROPOD_BACKEND(Reflection, "reflection", "1.0.0")
}  // namespace
"""

EIGEN = """
#include <neuropod/conversions/eigen.hh>
int main() {}
"""


@pytest.fixture(scope="module")
def parent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The parent's build folder."""
    source = tmp_path_factory.mktemp("parent")
    text = PARENT.replace("@NEUROPOD@", str(ROOT)).replace("@SETTINGS@", SETTINGS)
    (source / "CMakeLists.txt").write_text(text)
    (source / "main.cc").write_text((EXAMPLES / "cpp" / "every_call.cc").read_text())
    (source / "plugin.cc").write_text(PLUGIN)
    (source / "eigen.cc").write_text(EIGEN)
    build = source / "build"
    # With the flags of this checkout's own build, so that ccache serves.
    configure(source, build, "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON")
    run(["cmake", "--build", build])
    return build


def test_an_application_runs(parent: Path) -> None:
    env = {"NEUROPOD_BACKEND_PATH": "", "XDG_DATA_HOME": "/nowhere"}
    model = EXAMPLES / "cpp" / "models" / "addition"
    assert run([parent / "application", model], env=env) == "ok\n"


def test_the_parents_plug_in_is_made_in_the_parents_folder(parent: Path) -> None:
    folder = parent / "lib" / "neuropod" / "backends" / "reflection"
    manifest = json.loads((folder / "backend.json").read_text())
    assert (folder / manifest["library"]).is_file()
    assert manifest["neuropod_abi"] != ""


def test_no_tests_or_examples_are_built(parent: Path) -> None:
    assert "Total Tests: 0" in run(["ctest", "--test-dir", parent, "--show-only"])
    programs = [p.name for p in (parent / "neuropod").rglob("*") if p.parent.name == "bin"]
    assert programs == ["neuropod-worker"]  # what the library starts for use_ope


def test_the_parents_settings_stay(parent: Path) -> None:
    changed = parent / "changed.txt"
    assert not changed.exists(), changed.read_text()
    commands = json.loads((parent / "compile_commands.json").read_text())
    (own,) = (c["command"] for c in commands if c["file"].endswith("eigen.cc"))
    assert "-Wpedantic" not in own
    assert "-fvisibility" not in own


def test_nothing_of_ours_is_installed(parent: Path, tmp_path: Path) -> None:
    run(["cmake", "--install", parent, "--prefix", tmp_path])
    assert [p.name for p in tmp_path.rglob("*") if p.is_file()] == ["application"]
