"""Arrays by name: an `.npz` file, or a dict of a Python program."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from neuropod.errors import CorruptPackageError
from neuropod.evaluation.columns import Rows
from neuropod.evaluation.datasets.dataset import CHUNK_ROWS
from neuropod.evaluation.errors import DataError
from neuropod.packaging.arrays import Array, read_npz


class ArraysDataset:
    """Arrays whose first axis counts rows. They are whole in memory."""

    classes: Sequence[str] | None = None
    untyped = False

    def __init__(self, arrays: Mapping[str, Any], source: str) -> None:
        self.source = source
        self._arrays: dict[str, Array] = {name: np.asarray(a) for name, a in arrays.items()}
        for name, array in self._arrays.items():
            if array.ndim == 0:
                raise DataError(
                    f"{source}: array {name!r} is a single value; the first axis of each array "
                    "counts rows"
                )
        lengths = {name: len(array) for name, array in self._arrays.items()}
        if len(set(lengths.values())) > 1:
            shown = ", ".join(f"{name!r} has {length}" for name, length in lengths.items())
            raise DataError(f"{source}: arrays have different numbers of rows: {shown}")
        self.names = list(self._arrays)
        self.count: int | None = next(iter(lengths.values()), 0)

    def where(self, row: int) -> str:
        return f"{self.source} row {row}"

    def chunks(self, wanted: Collection[str]) -> Iterator[dict[str, Rows]]:
        for start in range(0, self.count or 0, CHUNK_ROWS):
            yield {name: self._arrays[name][start : start + CHUNK_ROWS] for name in wanted}


def open_npz(path: Path, dtypes: Mapping[str, str]) -> ArraysDataset:
    """Reads the file. `dtypes`: of the inputs, for types that numpy doesn't name."""
    try:
        return ArraysDataset(read_npz(path, dtypes), str(path))
    except CorruptPackageError as error:
        raise DataError(f"{path} can't be read: {error.__cause__ or error.message}") from error
