"""The module under the name that existing code knows, serialization, host copies and the stub."""

import importlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from echo_packages import DTYPES, write_addition

import neuropod
from neuropod import InvalidArgumentError, _native, neuropod_native


def test_native_neuropod(tmp_path: Path) -> None:
    package = write_addition(tmp_path / "addition")
    model = neuropod_native.Neuropod(str(package), [], visible_gpu=None, use_ope=False)
    x = np.ones(2, np.float32)
    assert model.infer({"x": x, "y": x})["out"].tolist() == [2, 2]
    assert model.get_name() == "addition"
    assert model.get_platform() == "echo"
    spec = model.get_inputs()[0]
    assert spec.name == "x"
    assert spec.type == neuropod_native.TensorType.float32
    assert (spec.dims[0].value, spec.dims[0].symbol) == (-2, "batch")
    assert [output.name for output in model.get_outputs()] == ["out"]


def test_tensor_types_are_named_as_dtypes() -> None:
    assert {member.name for member in neuropod_native.TensorType} == set(DTYPES)


@pytest.mark.parametrize("shape", [(), (1,), (3,), (0, 2), (2, 3)])
@pytest.mark.parametrize("dtype", [d for d in DTYPES if d != "string"])
def test_serialization_round_trips(dtype: str, shape: tuple[int, ...]) -> None:
    element = ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype
    array = np.arange(int(np.prod(shape))).reshape(shape).astype(element)
    for given in (array, array.T.copy().T, array.copy("F")):
        got = neuropod_native.deserialize(neuropod_native.serialize(given))
        assert got.dtype == array.dtype
        assert got.shape == shape
        np.testing.assert_array_equal(got, array)


def test_serialized_strings_come_back_as_bytes() -> None:
    array = np.array([["a", "ü"], ["", "🦊"]])
    got = neuropod_native.deserialize(neuropod_native.serialize(array))
    assert got.dtype.kind == "S"
    assert np.char.decode(got, "utf-8").tolist() == array.tolist()
    got = neuropod_native.deserialize(neuropod_native.serialize(np.array(["a\0"], object)))
    assert got.tolist() == [b"a\0"]


def test_serialized_dict() -> None:
    arrays = {"x": np.arange(3, dtype=np.int8), "ü": np.array(["a"])}
    got = neuropod_native.deserialize_dict(neuropod_native.serialize(arrays))
    assert got.keys() == arrays.keys()
    assert got["x"].tolist() == [0, 1, 2]
    assert got["ü"].tolist() == [b"a"]


@pytest.mark.parametrize("value", ["text", None, [1], {"x": [1]}, {1: np.zeros(1)}], ids=str)
def test_what_is_not_serialized(value: Any) -> None:
    with pytest.raises((TypeError, ValueError, RuntimeError)):
        neuropod_native.serialize(value)


def test_bytes_of_something_else() -> None:
    whole = neuropod_native.serialize(np.arange(3))
    for data in (b"", b"something", whole[:-1], whole[:-1] + b"!"):
        with pytest.raises(InvalidArgumentError):
            neuropod_native.deserialize(data)
    with pytest.raises(InvalidArgumentError):
        neuropod_native.deserialize_dict(whole)
    with pytest.raises(TypeError):
        neuropod_native.deserialize("text")  # type: ignore[arg-type]


def test_package_readers(tmp_path: Path) -> None:
    package = write_addition(tmp_path / "addition")
    names = [name for name, _ in _native.list_files(package)]
    assert names == ["0/data/echo.json", "config.json"]
    config = (package / "config.json").read_bytes()
    assert _native.read_file(package, "config.json") == config
    assert dict(_native.list_files(package))["config.json"] == len(config)
    assert len(_native.hash_file(package, "config.json")) == 64
    assert _native.read_config(package)["name"] == "addition"
    _native.verify_manifest(package)


def test_module_needs_nothing_but_the_system(tmp_path: Path) -> None:
    """libneuropod and the module carry everything else inside."""
    allowed = {"libc", "libm", "libstdc++", "libgcc_s", "ld-linux-x86-64", "ld-linux-aarch64"}
    for library, more in ((_native.library_path(), set()), (_native.__file__, {"libneuropod"})):
        dynamic = subprocess.run(
            ["readelf", "-d", library], capture_output=True, text=True, check=True
        ).stdout
        needed = {
            line.split("[")[1].split(".so")[0] for line in dynamic.splitlines() if "NEEDED" in line
        }
        assert needed <= allowed | more


def host_conflict(module: str, libraries: list[str], tmp_path: Path) -> str:
    """What the core says about a plug-in with these libraries, whose framework is `module`."""
    folder = tmp_path / "backend"
    folder.mkdir()
    (folder / "libplugin.so").write_bytes(b"")
    for library in libraries:
        Path(library).parent.mkdir(parents=True, exist_ok=True)
        Path(library).touch()
    manifest = {
        "manifest_version": 1,
        "platform": "hosted",
        "framework": module,
        "framework_version": "1.0.0",
        "neuropod_abi": _native.ABI_VERSION,
        "library": "libplugin.so",
        "libraries": libraries,
        "python_module": module,
        "gpu": False,
    }
    (folder / "backend.json").write_text(json.dumps(manifest))
    spec = _native.BackendLoadSpec("hosted", "1.0.0", str(folder))
    [candidate] = _native.find_backends("hosted", overrides=[spec]).candidates
    assert not candidate.rejected
    return _native.find_library_conflict(candidate.manifest)


@pytest.mark.parametrize("imported", [False, True])
def test_copy_of_the_framework_that_python_would_import_decides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, imported: bool
) -> None:
    package = tmp_path / "site" / "fake_framework"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    if imported:
        importlib.import_module("fake_framework")
    assert ("fake_framework" in sys.modules) == imported
    try:
        elsewhere = tmp_path / "elsewhere" / "lib" / "libfake.so"
        conflict = host_conflict("fake_framework", [str(elsewhere)], tmp_path)
        assert str(package) in conflict
        assert "use_ope=True" in conflict
        assert ("fake_framework" in sys.modules) == imported
    finally:
        sys.modules.pop("fake_framework", None)


def test_the_hosts_own_copy_is_no_conflict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "site" / "fake_framework"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    assert host_conflict("fake_framework", [str(package / "lib" / "libfake.so")], tmp_path) == ""


def test_framework_that_python_lacks_is_no_conflict(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere" / "libfake.so"
    assert host_conflict("no_such_framework", [str(elsewhere)], tmp_path) == ""


def test_stub_is_what_the_module_generates(tmp_path: Path) -> None:
    stub = Path(neuropod.__file__).with_name("_native.pyi")
    fresh = tmp_path / "_native.pyi"
    config = ["--config", str(Path(__file__).parents[3] / "ruff.toml"), "-q", str(fresh)]
    for command in (
        ["nanobind.stubgen", "-q", "-m", "neuropod._native", "-o", str(fresh)],
        ["ruff", "check", "--fix", "--select", "I", *config],
        ["ruff", "format", *config],
    ):
        subprocess.run([sys.executable, "-m", *command], check=True)
    assert stub.read_text() == fresh.read_text(), (
        "make it anew: python -m nanobind.stubgen -m neuropod._native "
        "-o python/neuropod/_native.pyi && make format"
    )
