"""The layer check: what it accepts, and what it reports where."""

from pathlib import Path

import pytest
from check_layers import (
    LayerCheck,
    layer_of,
    read_exceptions,
    without_cpp_comments,
    without_python_comments,
)


def check(root: Path, files: dict[str, str], exceptions: frozenset[tuple[str, str]] = frozenset()):
    """The findings of a tree that holds just `files`, as "path:line: message" strings."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return [str(finding) for finding in LayerCheck(root, exceptions).findings()]


@pytest.mark.parametrize(
    ("path", "row"),
    [
        ("base/error.hh", "base"),
        ("version.hh", "base"),
        ("options.hh", "options"),
        ("internal/neuropod_tensor.hh", "tensors"),
        ("internal/backend_registration.cc", "backend seam"),
        ("internal/config_utils.hh", "package"),
        ("core/generic_tensor.hh", "tensors"),
        ("backends/tensor_allocator.hh", "tensors"),
        ("backends/neuropod_backend.hh", "backend seam"),
        ("backends/echo/echo_backend.cc", "plug-ins"),
        ("multiprocess/shm/arena.cc", "out-of-process"),
        ("multiprocess/worker/main.cc", "worker"),
        ("neuropod.cc", "facade"),
        ("bindings/python/module.cc", "bindings"),
        ("package/zip_reader_test.cc", "tests"),
        ("testing/contract_suite/suite.hh", "tests"),
        ("something/new.cc", None),
        ("stray.hh", None),
    ],
)
def test_maps_files_to_rows(path, row):
    assert layer_of(path) == row


def test_accepts_own_row_and_rows_above(tmp_path):
    files = {
        "source/neuropod/base/error.hh": "#include <string>\n",
        "source/neuropod/base/error.cc": '#include "neuropod/base/error.hh"\n',
        "source/neuropod/package/zip.cc": '#include "neuropod/base/error.hh"\n#include <zlib.h>\n',
    }
    assert check(tmp_path, files) == []


def test_reports_include_of_a_row_below_with_its_line(tmp_path):
    files = {"source/neuropod/base/log.cc": '\n#include "neuropod/neuropod.hh"\n'}
    assert check(tmp_path, files) == [
        "source/neuropod/base/log.cc:2: layer 'base' includes \"neuropod/neuropod.hh\" of 'facade', "
        "a layer below it"
    ]


def test_reads_angle_brackets_as_well(tmp_path):
    files = {"source/neuropod/base/log.cc": "# include <neuropod/options.hh>\n"}
    assert len(check(tmp_path, files)) == 1


def test_ignores_includes_in_comments(tmp_path):
    text = '/*\n#include "neuropod/neuropod.hh"\n*/\n// #include "neuropod/options.hh"\n'
    assert check(tmp_path, {"source/neuropod/base/log.cc": text}) == []


def test_reports_files_of_no_row(tmp_path):
    assert check(tmp_path, {"source/neuropod/stray/x.cc": ""}) == [
        "source/neuropod/stray/x.cc:1: belongs to no layer: add it to LAYERS, or move it"
    ]


def test_reports_includes_of_no_row(tmp_path):
    findings = check(tmp_path, {"source/neuropod/base/x.cc": '#include "neuropod/gone/y.hh"\n'})
    assert findings == ['source/neuropod/base/x.cc:1: "neuropod/gone/y.hh" belongs to no layer']


def test_reports_relative_includes_of_our_headers(tmp_path):
    files = {
        "source/neuropod/base/error.hh": "",
        "source/neuropod/base/error.cc": '#include "error.hh"\n',
    }
    assert check(tmp_path, files) == [
        'source/neuropod/base/error.cc:1: "error.hh": include our headers by their full path, '
        '"neuropod/…"'
    ]


def test_a_plugin_includes_its_own_headers_by_name_but_no_others(tmp_path):
    files = {
        "source/neuropod/options.hh": "",
        "source/neuropod/backends/echo/tensor.hh": "",
        "source/neuropod/backends/echo/echo.cc": '#include "tensor.hh"\n#include "../../options.hh"\n',
    }
    findings = check(tmp_path, files)
    assert len(findings) == 1
    assert findings[0].startswith('source/neuropod/backends/echo/echo.cc:2: "../../options.hh"')


def test_tests_may_include_any_row_but_nothing_that_ships_includes_tests(tmp_path):
    files = {
        "source/neuropod/base/log_test.cc": '#include "neuropod/neuropod.hh"\n',
        "source/neuropod/neuropod.cc": '#include "neuropod/testing/fake_backend.hh"\n',
    }
    assert check(tmp_path, files) == [
        'source/neuropod/neuropod.cc:1: "neuropod/testing/fake_backend.hh" is test code'
    ]


def test_a_plugin_belongs_to_itself(tmp_path):
    include = '#include "neuropod/backends/echo/echo_tensor.hh"\n'
    files = {
        "source/neuropod/backends/echo/echo.cc": include,
        "source/neuropod/backends/other/other.cc": include,
        "source/neuropod/bindings/c/api.cc": include,
    }
    message = (
        '"neuropod/backends/echo/echo_tensor.hh" is inside a plug-in: nothing else includes it'
    )
    assert check(tmp_path, files) == [
        f"source/neuropod/backends/other/other.cc:1: {message}",
        f"source/neuropod/bindings/c/api.cc:1: {message}",
    ]


@pytest.mark.parametrize("header", ["nlohmann/json.hpp", "zlib.h", "gtest/gtest.h", "fmt/format.h"])
def test_installed_headers_leak_no_third_party_header(tmp_path, header):
    files = {"source/neuropod/internal/x.hh": f"#include <{header}>\n"}
    assert check(tmp_path, files) == [
        f"source/neuropod/internal/x.hh:1: installed header includes the third-party header <{header}>"
    ]


def test_standard_and_system_headers_are_fine_in_installed_headers(tmp_path):
    text = "#include <string_view>\n#include <stdint.h>\n#include <sys/mman.h>\n"
    assert check(tmp_path, {"source/neuropod/internal/x.hh": text}) == []


def test_third_party_headers_are_fine_where_nothing_is_installed(tmp_path):
    files = {
        "source/neuropod/internal/x.cc": "#include <nlohmann/json.hpp>\n",
        "source/neuropod/conversions/eigen.hh": "#include <Eigen/Core>\n",
        "source/neuropod/bindings/python/x.hh": "#include <nanobind/nanobind.h>\n",
    }
    assert check(tmp_path, files) == []


@pytest.mark.parametrize(
    "path",
    ["source/neuropod/neuropod.cc", "source/neuropod/backends/echo/echo.cc"],
)
def test_reports_a_framework_named_outside_its_folder(tmp_path, path):
    assert check(tmp_path, {path: 'if (platform == "torchscript") {}\n'}) == [
        f"{path}:1: 'torch' is named outside its backend's folder"
    ]


def test_frameworks_are_named_freely_in_their_folder_in_comments_and_in_tests(tmp_path):
    files = {
        "source/neuropod/backends/torchscript/x.cc": "#include <torch/script.h>\n",
        "source/neuropod/backends/tensorflow/x.cc": "int keras; int tensorflow;\n",
        "source/neuropod/neuropod.cc": "int x;  // as torch does\n/* TensorFlow\n too */\n",
        "source/neuropod/neuropod_test.cc": 'auto platform = "torchscript";\n',
        "python/neuropod/backends/torchscript/packager.py": "import torch\n",
        "python/neuropod/loader.py": '"""Takes torch tensors."""\n\nx = 1  # like ONNX\n',
    }
    assert check(tmp_path, files) == []


def test_checks_python_too(tmp_path):
    assert check(tmp_path, {"python/neuropod/loader.py": "\nimport torch\n"}) == [
        "python/neuropod/loader.py:2: 'torch' is named outside its backend's folder"
    ]


def test_python_folders_on_top_are_imported_from_above_only(tmp_path):
    files = {
        "python/neuropod/__main__.py": "from neuropod.cli.main import main\n",
        "python/neuropod/cli/evaluate.py": "def run():\n    from neuropod.evaluation import evaluate\n",
        "python/neuropod/evaluation/gate.py": "import neuropod.evaluation.result\n",
        "python/neuropod/evaluation/page.py": "from neuropod import cli\n",
        "python/neuropod/loader.py": "\nimport neuropod.evaluation\n",
    }
    assert check(tmp_path, files) == [
        "python/neuropod/evaluation/page.py:1: neuropod.cli is imported by cli/ and __main__.py only",
        "python/neuropod/loader.py:2: neuropod.evaluation is imported by evaluation/ and cli/ only",
    ]


def test_exceptions_hold_for_one_file_and_one_name(tmp_path):
    files = {"python/neuropod/loader.py": "torch = keras = 1\n"}
    exceptions = frozenset({("python/neuropod/loader.py", "torch")})
    assert check(tmp_path, files, exceptions) == [
        "python/neuropod/loader.py:1: 'keras' is named outside its backend's folder"
    ]


def test_exceptions_that_nothing_needs_are_reported(tmp_path):
    exceptions = frozenset({("python/neuropod/gone.py", "torch")})
    assert check(tmp_path, {"python/neuropod/loader.py": ""}, exceptions) == [
        "layer_exceptions.txt:1: exception 'python/neuropod/gone.py torch' is not needed any more: "
        "remove it"
    ]


def test_exceptions_need_a_reason(tmp_path):
    path = tmp_path / "exceptions.txt"
    path.write_text("# header\na.py torch because it is so\n")
    assert read_exceptions(path) == {("a.py", "torch")}
    path.write_text("a.py torch\n")
    with pytest.raises(ValueError, match="reason"):
        read_exceptions(path)


def test_literals_are_no_comments():
    text = (
        'auto a = "// torch"; auto b = R"x(/* )" torch)x"; auto c = \'"\'; int d = 1\'000; // e\n'
    )
    assert without_cpp_comments(text) == text[: text.index("// e")] + "    \n"
    assert without_python_comments('a = "# torch"  # b\n') == 'a = "# torch"  \n'


def test_this_repository_keeps_its_layers():
    root = Path(__file__).resolve().parents[2]
    exceptions = read_exceptions(root / "tools" / "layer_exceptions.txt")
    assert LayerCheck(root, exceptions).findings() == []
