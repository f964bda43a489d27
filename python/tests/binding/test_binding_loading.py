"""load_neuropod: options and their names, specs, lazy loading, the names of existing code."""

import inspect
import json
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from echo_packages import spec_dict, write_addition, write_package

import neuropod
from neuropod import InvalidArgumentError, Neuropod, NeuropodError, _native, load_neuropod
from neuropod.options import LoadOptions, device_index
from neuropod.registry import register_backend, registered_backends

ONES = np.ones(3, np.float32)


@pytest.fixture
def package(tmp_path: Path) -> Path:
    return write_addition(tmp_path / "addition")


def run_python(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, timeout=120, check=False
    )


def test_specs_and_names(package: Path) -> None:
    with load_neuropod(str(package)) as model:
        assert isinstance(model, Neuropod)
        assert model.name == "addition"
        assert model.platform == "echo"
        assert model.inputs == [
            spec_dict("x", "float32", ["batch"]),
            spec_dict("y", "float32", ["batch"]),
        ]
        assert model.outputs == [spec_dict("out", "float32", ["batch"])]
        model.inputs[0]["name"] = "changed"
        assert model.inputs[0]["name"] == "x"
        for part in ("addition", "echo", "x    float32", "out  float32"):
            assert part in repr(model)


def test_every_kind_of_dimension(tmp_path: Path) -> None:
    path = write_package(
        tmp_path / "package",
        inputs=[("x", "uint8", [1200, None, "channels"]), ("scalar", "string", [])],
        outputs=[("y", "uint8", [1200, None, "channels"])],
        model={"outputs": {"y": {"op": "identity", "input": "x"}}},
    )
    config = json.loads((path / "config.json").read_text())
    config["input_spec"][1]["optional"] = True
    config["description"] = "Beschreibung"
    (path / "config.json").write_text(json.dumps(config))
    with load_neuropod(path) as model:
        assert model.inputs[0]["shape"] == [1200, None, "channels"]
        assert model.inputs[1] == {**spec_dict("scalar", "string", []), "optional": True}
        assert model.config["description"] == "Beschreibung"
        assert model.config["format_version"] == 1
        assert model.config["stateful"] is False


def test_loading_later(package: Path) -> None:
    with load_neuropod(package, load_model_at_construction=False) as model:
        assert model.name == "addition"
        with pytest.raises(NeuropodError, match="load_model"):
            model.infer({"x": ONES, "y": ONES})
        model.load_model()
        np.testing.assert_array_equal(model.infer({"x": ONES, "y": ONES})["out"], 2 * ONES)


@pytest.mark.parametrize(
    ("wrong", "nearest"),
    [
        ("visible_devices", "visible_device"),
        ("use_opes", "use_ope"),
        ("verify_hash", "verify_hashes"),
        ("thread", "threads"),
        ("load_custom_ops", "load_model_at_construction"),
        ("zzz", "use_ope"),
    ],
)
def test_unknown_option_is_refused_with_the_nearest(
    package: Path, wrong: str, nearest: str
) -> None:
    for load in (load_neuropod, Neuropod):
        with pytest.raises(InvalidArgumentError, match=wrong) as caught:
            load(package, **{wrong: True})
        assert nearest in str(caught.value)
        assert "unexpected keyword argument" in str(caught.value)
        assert isinstance(caught.value, TypeError)


@pytest.mark.parametrize(
    "options",
    [
        {"threads": 0},
        {"threads": -1},
        {"threads": 1.5},
        {"threads": True},
        {"visible_device": -1},
        {"visible_device": True},
        {"visible_device": 1.0},
        {"visible_device": "tpu"},
        {"visible_device": "gpu:x"},
        {"visible_gpu": "0"},
        {"visible_gpu": -1},
        {"visible_gpu": 0, "visible_device": 0},
        {"verify_hashes": "yes"},
        {"strict": 1},
        {"ope_options": {"free_memory_every_cicle": True}},
        {"ope_options": 3},
        {"backend_overrides": ["echo"]},
        {"backend_overrides": [("echo", "1.0.0")]},
    ],
    ids=str,
)
def test_unusable_option_is_refused(package: Path, options: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        load_neuropod(package, **options)
    # The text names the option.
    assert any(name in str(caught.value) for name in options)


@pytest.mark.parametrize(
    "options",
    [
        {"visible_device": "cpu"},
        {"visible_device": 0},
        {"visible_device": "GPU:1"},
        {"visible_gpu": None},
        {"visible_gpu": 0},
        {"threads": 1},
        {"threads": None},
        {"strict": True},
        {"verify_hashes": False},
        {"disable_shape_and_type_checking": True},
        {"ope_options": {"free_memory_every_cycle": False, "control_queue_name": "queue"}},
        {"ope_options": None},
        {"backend_overrides": ()},
    ],
    ids=str,
)
def test_usable_options(package: Path, options: dict[str, Any]) -> None:
    with load_neuropod(package, **options) as model:
        np.testing.assert_array_equal(model.infer({"x": ONES, "y": ONES})["out"], 2 * ONES)


def test_devices() -> None:
    assert [device_index(device) for device in ("cpu", "CPU", None)] == [-1, -1, -1]
    assert [device_index(device) for device in (0, 3, 12, np.int64(2))] == [0, 3, 12, 2]
    assert [device_index(device) for device in ("gpu", "cuda", "cuda:4")] == [0, 0, 4]


def test_out_of_process_gives_the_same(package: Path) -> None:
    with load_neuropod(package, use_ope=True) as model:
        np.testing.assert_array_equal(model.infer({"x": ONES, "y": ONES})["out"], 2 * ONES)


def test_without_checks_a_wrong_dtype_goes_through(package: Path) -> None:
    with load_neuropod(package, disable_shape_and_type_checking=True) as model:
        out = model.infer({"x": np.ones(2), "y": np.ones(2)})["out"]
        assert out.dtype == np.float64


def test_signature_names_every_option() -> None:
    options = set(inspect.signature(load_neuropod).parameters) - {"path"}
    assert options == {*LoadOptions.__annotations__, "swappable"}
    for option in options:
        assert f"{option}:" in (load_neuropod.__doc__ or "") or option == "visible_gpu"


def test_names_of_existing_code(package: Path) -> None:
    from neuropod.loader import NativeNeuropodExecutor
    from neuropod.loader import load_neuropod as load

    assert load(neuropod_path=package).name == "addition"  # type: ignore[call-arg]
    assert load(package, _always_use_native=True).name == "addition"  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="_always_use_native"):
        load(package, _always_use_native=False)  # type: ignore[call-arg]
    with NativeNeuropodExecutor(package, visible_gpu=None) as model:
        assert model.model.get_name() == "addition"


def test_unicode_path_and_names(tmp_path: Path) -> None:
    path = write_package(
        tmp_path / "päckchen 🦊",
        name="Modell 🦊",
        inputs=[("größe", "float32", [None])],
        outputs=[("ergebnis", "float32", [None])],
        model={"outputs": {"ergebnis": {"op": "scale", "input": "größe", "by": 2}}},
    )
    with load_neuropod(path) as model:
        assert model.name == "Modell 🦊"
        np.testing.assert_array_equal(model.infer({"größe": ONES})["ergebnis"], 2 * ONES)


# Plug-ins.


def test_backends_are_found_without_loading_one() -> None:
    search = _native.find_backends("echo")
    assert [c.manifest.platform for c in search.candidates if not c.rejected]
    assert search.searched
    assert not _native.find_backends("abacus").candidates
    assert Path(_native.library_path()).is_file()
    assert _native.library_version() == neuropod.__version__


def test_override_and_registered_backend(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = _native.find_backends("echo").candidates[0].manifest
    override = (found.platform, found.framework_version, found.directory)
    for overrides in ([override], [_native.BackendLoadSpec(*override)]):
        with load_neuropod(package, backend_overrides=overrides) as model:
            assert model.platform == "echo"
    monkeypatch.setattr("neuropod.registry._registered", [])
    register_backend("echo", found.framework_version, found.library)
    assert registered_backends() == (("echo", found.framework_version, found.library),)
    with load_neuropod(package) as model:
        assert model.platform == "echo"


# In a fresh process.


def test_import_is_light() -> None:
    code = """
import sys
import neuropod
heavy = {"numpy", "torch", "tensorflow", "ml_dtypes", "rich", "neuropod._native"} & set(sys.modules)
print(*heavy)
"""
    result = run_python("-c", code)
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip() == ""


def test_loading_imports_no_framework(package: Path) -> None:
    code = f"""
import sys
from neuropod import load_neuropod
load_neuropod({str(package)!r})
print(*({{"torch", "tensorflow", "ml_dtypes"}} & set(sys.modules)))
"""
    result = run_python("-c", code)
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip() == ""


def test_model_that_is_alive_at_exit(package: Path) -> None:
    code = f"""
import threading
import numpy as np
from neuropod import load_neuropod
model = load_neuropod({str(package)!r})
x = np.ones(4, np.float32)
output = model.infer({{"x": x, "y": x}})["out"]
def forever():
    while True:
        model.infer({{"x": x, "y": x}})
threading.Thread(target=forever, daemon=True).start()
print(output.tolist())
"""
    result = run_python("-c", code)
    assert (result.returncode, result.stdout) == (0, "[2.0, 2.0, 2.0, 2.0]\n"), result.stderr
    assert result.stderr == ""


def test_program(package: Path, tmp_path: Path) -> None:
    inputs, options, output = (tmp_path / name for name in ("in.pkl", "options.pkl", "out.pkl"))
    inputs.write_bytes(pickle.dumps({"x": ONES, "y": ONES}))
    base = ["-m", "neuropod.loader", "--neuropod-path", str(package)]
    base += ["--input-pkl-path", str(inputs), "--output-pkl-path", str(output)]
    result = run_python(*base)
    assert (result.returncode, result.stderr) == (0, "")
    np.testing.assert_array_equal(pickle.loads(output.read_bytes())["out"], 2 * ONES)

    options.write_bytes(pickle.dumps({"visible_gpu": None}))
    assert run_python(*base, "--args-pkl-path", str(options)).returncode == 0

    options.write_bytes(pickle.dumps({"visible_gpus": None}))
    result = run_python(*base, "--args-pkl-path", str(options))
    assert result.returncode == 1
    assert "visible_gpus" in result.stderr
    assert "Traceback" not in result.stderr


def test_program_runs_no_code_out_of_a_pickle(package: Path, tmp_path: Path) -> None:
    class Evil:
        def __reduce__(self) -> Any:
            return Path.touch, (tmp_path / "touched",)

    (tmp_path / "in.pkl").write_bytes(pickle.dumps({"x": Evil()}))
    result = run_python(
        "-m", "neuropod.loader", "--neuropod-path", str(package),
        "--input-pkl-path", str(tmp_path / "in.pkl"),
    )  # fmt: skip
    assert result.returncode == 1
    assert not (tmp_path / "touched").exists()


@pytest.mark.parametrize("path", [None, 5])
def test_path_that_is_none_says_what_a_path_is(path: object) -> None:
    with pytest.raises(TypeError, match=r"expected str, bytes or os\.PathLike object, not"):
        load_neuropod(path)  # type: ignore[arg-type]
