"""Inputs from files: arrays, JSON and pictures."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from neuropod.cli.exit_codes import UsageError
from neuropod.cli.spec_view import shape_text
from neuropod.errors import CorruptPackageError
from neuropod.packaging.arrays import Array, read_npz
from neuropod.packaging.nearest_name import did_you_mean

_PICTURES = (".png", ".jpg", ".jpeg")
_SUFFIXES = (".npy", ".npz", ".json", *_PICTURES)


def read_inputs(given: Sequence[str], specs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The inputs that `-i` names: `NAME=FILE`, or one `.npz` or `.json` with several by name.

    Values are arrays, or what JSON holds. Raises UsageError that names the file.
    """
    by_name = {spec["name"]: spec for spec in specs}
    inputs: dict[str, Any] = {}
    for argument in given:
        name, path = _split(argument, by_name)
        values = {name: _read_one(path, by_name[name])} if name else _read_many(path, by_name)
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


def _read_one(path: Path, spec: Mapping[str, Any]) -> Any:
    suffix = path.suffix.lower()
    if suffix == ".json":
        return _read_json(path)
    if suffix in _PICTURES:
        return _read_picture(path, spec)
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


def _read_picture(path: Path, spec: Mapping[str, Any]) -> Array:
    """The picture's own pixels, turned upright as its metadata says; never scaled or converted."""
    import numpy as np

    try:
        from PIL import Image, ImageOps
    except ImportError as error:
        raise UsageError("reading pictures takes pillow: `pip install pillow`") from error
    try:
        with Image.open(path) as opened:
            picture = ImageOps.exif_transpose(opened)
            if picture.mode in ("P", "PA"):
                picture = picture.convert("RGBA" if "transparency" in picture.info else "RGB")
            elif picture.mode in ("CMYK", "YCbCr", "LAB", "HSV"):
                picture = picture.convert("RGB")
            elif picture.mode == "1":
                picture = picture.convert("L")
            mode = picture.mode
            array: Array = np.asarray(picture)
    except (OSError, ValueError, SyntaxError) as error:
        raise UsageError(f"{path} can't be read as a picture: {error}") from error
    return _fit_to_spec(array, spec, path, mode)


def _fit_to_spec(array: Array, spec: Mapping[str, Any], path: Path, mode: str) -> Array:
    """Adds axes of size 1 that the spec has: a batch before, a single channel after."""
    shape = spec["shape"]
    fitted = array
    if fitted.ndim == 2 and len(shape) in (3, 4) and shape[-1] == 1:
        fitted = fitted[..., None]
    takes_one = len(shape) == 4 and (shape[0] in (1, None) or isinstance(shape[0], str))
    if fitted.ndim == 3 and takes_one:
        fitted = fitted[None]
    fits = len(shape) == fitted.ndim and all(
        not isinstance(want, int) or want == size
        for want, size in zip(shape, fitted.shape, strict=True)
    )
    if not fits or str(fitted.dtype) != spec["dtype"]:
        height, width = array.shape[:2]
        raise UsageError(
            f"{path} is {width}x{height} {mode}, {array.dtype} {array.shape}; input {spec['name']!r} "
            f"expects {spec['dtype']} {shape_text(list(shape))}; pictures are neither scaled nor "
            "converted, so do that first"
        )
    return fitted
