"""Inputs made up from a model's specs."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from neuropod.cli.exit_codes import UsageError
from neuropod.packaging.nearest_name import did_you_mean

if TYPE_CHECKING:
    import numpy as np

    from neuropod.packaging.arrays import Array


def parse_sizes(given: Sequence[str], specs: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """`["batch=8", "image[1]=224"]` as numbers; a size is a symbol's or that of one axis of an input.

    Raises UsageError for what the specs don't have.
    """
    known = {size for spec in specs for size in spec["shape"] if isinstance(size, str)}
    known |= {
        f"{spec['name']}[{axis}]"
        for spec in specs
        for axis, size in enumerate(spec["shape"])
        if size is None
    }
    sizes = {}
    for argument in given:
        name, equals, number = argument.rpartition("=")
        if not equals or not number.isdecimal():
            raise UsageError(f"--size {argument}: expected NAME=N, as in batch=8 or image[1]=224")
        if name not in known:
            there_are = f"; there are: {', '.join(sorted(known))}" if known else "; all are fixed"
            raise UsageError(
                f"--size {argument}: the inputs have no open size {name!r}"
                f"{did_you_mean(name, known) or there_are}"
            )
        sizes[name] = int(number)
    return sizes


def random_inputs(
    specs: Sequence[Mapping[str, Any]], sizes: Mapping[str, int], seed: int
) -> dict[str, "Array"]:
    """An array for each input that isn't optional; sizes that nobody gave are 1.

    Floating numbers lie in [0, 1), uint8 in [0, 255], other whole numbers are 0 or 1 (they are often
    indices), strings are short words. The same seed gives the same inputs.
    """
    import numpy as np

    generator = np.random.default_rng(seed)
    inputs = {}
    for spec in specs:
        if spec.get("optional"):
            continue
        shape = tuple(
            _size(spec["name"], axis, size, sizes) for axis, size in enumerate(spec["shape"])
        )
        try:
            inputs[spec["name"]] = _random_array(generator, spec["dtype"], shape)
        except (MemoryError, ValueError) as error:
            raise UsageError(
                f"input {spec['name']!r} of shape {shape} doesn't fit into memory; --size makes it smaller"
            ) from error
    return inputs


def _size(name: str, axis: int, size: Any, sizes: Mapping[str, int]) -> int:
    if isinstance(size, int):
        return size
    return sizes.get(f"{name}[{axis}]" if size is None else size, 1)


def _random_array(generator: "np.random.Generator", dtype: str, shape: tuple[int, ...]) -> "Array":
    import numpy as np

    from neuropod.packaging.dtypes import numpy_dtype

    if dtype == "string":
        words = np.array([f"word{i}" for i in range(10)])
        return np.asarray(generator.choice(words, shape))
    target = numpy_dtype(dtype)
    if dtype == "uint8":
        return generator.integers(0, 256, shape, target)
    if "int" in dtype or dtype == "bool":
        return generator.integers(0, 2, shape, np.uint8).astype(target)
    if target.kind == "c":
        return np.asarray(generator.random(shape) + 1j * generator.random(shape)).astype(target)
    single = np.asarray(generator.random(math.prod(shape), np.float32)).reshape(shape)
    return single.astype(target)
