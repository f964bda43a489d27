"""Tensor specs: what a problem API says about each input and output."""

import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from neuropod.errors import InvalidArgumentError
from neuropod.packaging.dtypes import dtype_name
from neuropod.packaging.nearest_name import did_you_mean

MAX_DIMENSION: Final = 2**31 - 1
"""The largest fixed dimension that every reader of packages takes."""

_REQUIRED_KEYS = ("name", "dtype", "shape")
_KEYS = (*_REQUIRED_KEYS, "optional")

Spec = dict[str, Any]


def canonical_specs(specs: Iterable[Mapping[str, Any]], side: str) -> list[Spec]:
    """The specs as `config.json` writes them, checked.

    `side` is `"input_spec"` or `"output_spec"`, for messages. A dtype becomes the name that packages
    use, a shape a list of positive ints, symbols and None. `optional` stays only where it is true.
    Raises InvalidArgumentError that names the side, the tensor and what was found.
    """
    if isinstance(specs, (str, bytes, Mapping)) or not isinstance(specs, Iterable):
        raise InvalidArgumentError(
            f"{side} must be a list of dicts with 'name', 'dtype' and 'shape', not {specs!r}"
        )
    result = [_canonical_spec(item, f"{side}[{i}]", side) for i, item in enumerate(specs)]
    seen: set[str] = set()
    for item in result:
        if item["name"] in seen:
            raise InvalidArgumentError(f"{side} names {item['name']!r} twice; names must differ")
        seen.add(item["name"])
    return result


def _canonical_spec(item: Any, where: str, side: str) -> Spec:
    if not isinstance(item, Mapping):
        raise InvalidArgumentError(
            f"{where} must be a dict with 'name', 'dtype' and 'shape', not {item!r}"
        )
    for key in _REQUIRED_KEYS:
        if key not in item:
            raise InvalidArgumentError(f"{where} lacks {key!r}: {dict(item)!r}")
    for key in item:
        if key not in _KEYS:
            raise InvalidArgumentError(
                f"{where} has an unknown key {key!r}{did_you_mean(key, _KEYS)}"
            )
    name = checked_name(item["name"], f"the name in {where}")
    tensor = f"{side} {name!r}"
    try:
        dtype = dtype_name(item["dtype"])
    except InvalidArgumentError as error:
        raise InvalidArgumentError(f"{tensor}: {error.message}") from error
    spec: Spec = {"name": name, "dtype": dtype, "shape": canonical_shape(item["shape"], tensor)}
    optional = item.get("optional", False)
    if not isinstance(optional, bool):
        raise InvalidArgumentError(f"{tensor}: 'optional' must be True or False, not {optional!r}")
    if optional:
        if side == "output_spec":
            raise InvalidArgumentError(f"{tensor}: only inputs can be optional")
        spec["optional"] = True
    return spec


def canonical_shape(shape: Any, tensor: str) -> list[int | str | None]:
    """A shape as a list of positive ints, symbols and None; `tensor` is for messages."""
    if isinstance(shape, (str, bytes)) or not isinstance(shape, Sequence):
        raise InvalidArgumentError(
            f"{tensor}: 'shape' must be a tuple or list such as ('batch', 3, None), not {shape!r}"
        )
    return [_canonical_dimension(dimension, shape, tensor) for dimension in shape]


def _canonical_dimension(dimension: Any, shape: Any, tensor: str) -> int | str | None:
    if dimension is None:
        return None
    if isinstance(dimension, str):
        return checked_name(dimension, f"{tensor}: a symbol in shape {tuple(shape)!r}")
    expected = "a dimension is a positive int, a symbol (str) or None (any size)"
    if isinstance(dimension, bool) or not hasattr(dimension, "__index__"):
        raise InvalidArgumentError(
            f"{tensor}: shape {tuple(shape)!r} has {dimension!r}; {expected}"
        )
    size = operator.index(dimension)
    if not 0 < size <= MAX_DIMENSION:
        limit = f"at most {MAX_DIMENSION}" if size > 0 else "at least 1; use None for any size"
        raise InvalidArgumentError(
            f"{tensor}: shape {tuple(shape)!r} has {size}; a fixed dimension is {limit}"
        )
    return size


def checked_name(name: Any, what: str) -> str:
    """`name` if it is a string that JSON can hold, and not empty; `what` is for messages."""
    if not isinstance(name, str):
        raise InvalidArgumentError(f"{what} must be a string, not {name!r}")
    if not name:
        raise InvalidArgumentError(f"{what} must not be empty")
    try:
        name.encode()
    except UnicodeEncodeError as error:
        raise InvalidArgumentError(f"{what} is no valid unicode: {name!r}") from error
    return name
