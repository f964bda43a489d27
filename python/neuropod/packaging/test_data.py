"""Test data in packages: `test_data.pkl`, which older tools read, and `test_data/*.npz`."""

import io
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from neuropod.errors import CorruptPackageError, InvalidPackageError
from neuropod.packaging.arrays import Array, read_npz, write_npz
from neuropod.packaging.plain_pickle import dump_plain_pickle, load_plain_pickle

__all__ = [
    "FOLDER_NAME",
    "PICKLE_NAME",
    "load_plain_pickle",
    "read_test_data",
    "write_pickled",
    "write_test_data",
]

PICKLE_NAME: Final = "test_data.pkl"
FOLDER_NAME: Final = "test_data"
_PARTS = ("test_input", "test_output")


def write_test_data(
    package: Path, inputs: Mapping[str, Array], outputs: Mapping[str, Array] | None
) -> None:
    """Writes test data into a package's folder, for older readers and for ours."""
    write_pickled(package, dict(inputs), None if outputs is None else dict(outputs))
    folder = package / FOLDER_NAME
    folder.mkdir()
    write_npz(folder / "test_input.npz", inputs)
    if outputs is not None:
        write_npz(folder / "test_output.npz", outputs)


def write_pickled(package: Path, inputs: Any, outputs: Any) -> None:
    """Writes `test_data.pkl` alone."""
    with (package / PICKLE_NAME).open("wb") as file:
        dump_plain_pickle({"test_input": inputs, "test_output": outputs}, file)


def read_test_data(package: Path, dtypes: Mapping[str, str]) -> dict[str, Any] | None:
    """`{"test_input": …, "test_output": …}` of a package (folder or zip), or None if it has none.

    `test_output` is None if the package has no expectation. `dtypes`: dtype names of all tensors.
    Raises InvalidPackageError if a pickle holds anything but plain data, CorruptPackageError if the
    data can't be read.
    """
    stored = {part: _read(package, f"{FOLDER_NAME}/{part}.npz") for part in _PARTS}
    if stored["test_input"] is not None:
        return {
            part: None
            if data is None
            else read_npz(io.BytesIO(data), dtypes, f"{FOLDER_NAME}/{part}.npz of {package}")
            for part, data in stored.items()
        }
    pickled = _read(package, PICKLE_NAME)
    return None if pickled is None else _checked(load_plain_pickle(pickled))


def _checked(content: Any) -> dict[str, Any]:
    """The pickle's content, if it has the form of test data."""
    if not isinstance(content, dict) or not isinstance(content.get("test_input"), dict):
        raise InvalidPackageError(f"{PICKLE_NAME} holds no inputs by name under 'test_input'")
    outputs = content.get("test_output")
    if outputs is not None and not isinstance(outputs, dict):
        raise InvalidPackageError(f"{PICKLE_NAME} holds no outputs by name under 'test_output'")
    return {"test_input": content["test_input"], "test_output": outputs}


def _read(package: Path, name: str) -> bytes | None:
    if package.is_dir():
        path = package / name
        return path.read_bytes() if path.is_file() else None
    try:
        with zipfile.ZipFile(package) as archive:
            return archive.read(name) if name in archive.namelist() else None
    except (zipfile.BadZipFile, EOFError, zipfile.zlib.error) as error:  # type: ignore[attr-defined]
        raise CorruptPackageError(f"{name} in {package} can't be read: {error}") from error
