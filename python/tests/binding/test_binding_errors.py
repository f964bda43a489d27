"""Error classes: one per code, each the fitting builtin too, the same table as the native one."""

import os
import pickle
from pathlib import Path
from typing import Any

import pytest
from echo_packages import write_addition, write_package

from neuropod import (
    BackendNotFoundError,
    CorruptPackageError,
    InvalidArgumentError,
    InvalidPackageError,
    NeuropodError,
    NotFoundError,
    _native,
    load_neuropod,
)
from neuropod.errors import ERROR_CLASSES

BUILTINS = {
    "invalid_argument": ValueError,
    "spec_mismatch": ValueError,
    "not_found": FileNotFoundError,
    "invalid_package": ValueError,
    "corrupt_package": OSError,
    "backend_not_found": ImportError,
    "version_conflict": ImportError,
    "load_failed": ImportError,
    "model_error": RuntimeError,
    "out_of_memory": MemoryError,
    "unavailable": ConnectionError,
    "worker_died": ChildProcessError,
    "timeout": TimeoutError,
    "cancelled": InterruptedError,
}


def test_classes_mirror_the_native_table() -> None:
    ours = [(c.code, c.origin, c.retryable) for c in ERROR_CLASSES.values()]
    assert ours == _native.error_codes()


@pytest.mark.parametrize("code", ERROR_CLASSES)
def test_each_class_is_a_builtin_and_travels(code: str) -> None:
    error_class = ERROR_CLASSES[code]
    assert issubclass(error_class, NeuropodError)
    assert issubclass(error_class, RuntimeError)
    assert issubclass(error_class, BUILTINS[code])
    error = error_class("what happened")
    assert str(error) == "Neuropod Error: what happened"
    assert error.message == "what happened"
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is error_class
    assert str(copy) == str(error)
    assert str(error_class(str(error))) == str(error)


def test_missing_path(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match=r"nowhere\.neuropod") as caught:
        load_neuropod(tmp_path / "nowhere.neuropod")
    assert isinstance(caught.value, FileNotFoundError)
    assert caught.value.code == "not_found"
    assert caught.value.origin == "caller"
    assert not caught.value.retryable
    assert str(caught.value).startswith("Neuropod Error: ")


def test_path_that_is_not_utf_8(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match=r"\\xff"):
        load_neuropod(os.fsencode(tmp_path) + b"/\xff")
    package = write_addition(Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xffpackage")))
    assert load_neuropod(package).name == "addition"


def test_no_package(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"no zip")
    with pytest.raises(CorruptPackageError, match="file"):
        load_neuropod(tmp_path / "file")
    (tmp_path / "folder").mkdir()
    with pytest.raises(InvalidPackageError, match=r"config\.json"):
        load_neuropod(tmp_path / "folder")


def test_platform_without_a_plug_in(tmp_path: Path) -> None:
    package = write_addition(tmp_path / "package")
    config = package / "config.json"
    config.write_text(config.read_text().replace('"echo"', '"abacus"'))
    with pytest.raises(BackendNotFoundError, match="abacus") as caught:
        load_neuropod(package)
    assert isinstance(caught.value, ImportError)
    assert "echo" in str(caught.value)


def test_package_that_is_refused_leaves_nothing(tmp_path: Path) -> None:
    package = write_package(
        tmp_path / "package",
        inputs=[("x", "float33", [None])],
        outputs=[],
        model={"outputs": {}},
    )
    with pytest.raises(InvalidPackageError, match="float33"):
        load_neuropod(package)


@pytest.mark.parametrize("path", [None, 3, ["a"]], ids=str)
def test_path_of_another_type(path: Any) -> None:
    with pytest.raises(TypeError):
        load_neuropod(path)


def test_loading_twice(tmp_path: Path) -> None:
    package = write_addition(tmp_path / "package")
    with load_neuropod(package) as model, pytest.raises(InvalidArgumentError, match="addition"):
        model.load_model()
