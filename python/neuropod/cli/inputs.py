"""Inputs from files: arrays, JSON and pictures."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from neuropod.cli.exit_codes import UsageError
from neuropod.cli.pictures import PICTURES, read_picture
from neuropod.errors import CorruptPackageError
from neuropod.packaging.arrays import Array, read_npz
from neuropod.packaging.nearest_name import did_you_mean

_SUFFIXES = (".npy", ".npz", ".json", *PICTURES)


def read_inputs(
    given: Sequence[str], specs: Sequence[Mapping[str, Any]], resize: bool = False
) -> dict[str, Any]:
    """The inputs that `-i` names: `NAME=FILE`, or one `.npz` or `.json` with several by name.

    Values are arrays, or what JSON holds. `resize` makes pictures fit their spec. Raises UsageError
    that names the file.
    """
    by_name = {spec["name"]: spec for spec in specs}
    inputs: dict[str, Any] = {}
    for argument in given:
        name, path = _split(argument, by_name)
        values = (
            {name: _read_one(path, by_name[name], resize)} if name else _read_many(path, by_name)
        )
        for key, value in values.items():
            if key not in by_name:
                raise UsageError(
                    f"{path} has {key!r}, which is no input of the model{did_you_mean(key, by_name)}"
                )
            if key in inputs:
                raise UsageError(f"input {key!r} is given twice")
            inputs[key] = value
    return inputs


def _split(argument: str, by_name: Mapping[str, Any]) -> tuple[str | None, Path]:
    """The name (None: several in one file) and the file. Names may hold '=', files may too."""
    for name in sorted(by_name, key=len, reverse=True):
        if argument.startswith(f"{name}="):
            return name, _existing(argument.removeprefix(f"{name}="))
    name, equals, _ = argument.partition("=")
    if equals and not Path(argument).exists():
        raise UsageError(f"the model has no input {name!r}{did_you_mean(name, by_name)}")
    return None, _existing(argument)


def _existing(text: str) -> Path:
    path = Path(text)
    if not path.is_file():
        raise UsageError(f"{path} {'is a folder' if path.is_dir() else 'does not exist'}")
    if path.suffix.lower() not in _SUFFIXES:
        raise UsageError(f"{path}: unknown kind of file; inputs come from {', '.join(_SUFFIXES)}")
    return path


def _read_many(path: Path, by_name: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    suffix = path.suffix.lower()
    if suffix == ".npz":
        return dict(_read_archive(path, by_name))
    if suffix == ".json":
        content = _read_json(path)
        if isinstance(content, dict):
            return content
        raise UsageError(f"{path} holds no object with inputs by name; -i NAME={path} gives it one")
    raise UsageError(f"{path} holds one array; -i NAME={path} says which input it is")


def _read_one(path: Path, spec: Mapping[str, Any], resize: bool) -> Any:
    suffix = path.suffix.lower()
    if suffix == ".json":
        return _read_json(path)
    if suffix in PICTURES:
        return read_picture(path, spec, resize)
    if suffix == ".npz":
        arrays = _read_archive(path, {spec["name"]: spec})
        if len(arrays) != 1:
            raise UsageError(
                f"{path} holds {len(arrays)} arrays ({', '.join(arrays)}); give it without a name"
            )
        return next(iter(arrays.values()))
    return _read_array(path, spec)


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except ValueError as error:
        raise UsageError(f"{path} is no JSON: {error}") from error


def _read_archive(path: Path, by_name: Mapping[str, Mapping[str, Any]]) -> dict[str, Array]:
    try:
        return read_npz(path, {name: spec["dtype"] for name, spec in by_name.items()})
    except CorruptPackageError as error:
        raise UsageError(f"{path} can't be read: {error.__cause__ or error.message}") from error


def _read_array(path: Path, spec: Mapping[str, Any]) -> Array:
    import numpy as np

    from neuropod.packaging.dtypes import numpy_dtype

    try:
        array: Array = np.load(path, allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise UsageError(f"{path} can't be read as an array: {error}") from error
    return array.view(numpy_dtype(spec["dtype"])) if array.dtype.kind == "V" else array
