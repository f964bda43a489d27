"""Columns on disk: what is decoded once and read by every package's process.

A column is one value per row, all of one dtype and rank. Rows may differ in shape. Only the rows that
are asked for come into memory, by ordinary reads: mapped files would count as memory of whoever reads.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from neuropod.packaging.arrays import Array, string_array
from neuropod.packaging.dtypes import dtype_name, numpy_dtype

_BLOCK_ELEMENTS: Final = 1 << 20

Rows = Array | list[Array]
"""Values of several rows: one array with rows along its first axis, or an array per row."""


@dataclass(frozen=True)
class Column:
    """A finished column. `shape` is the shape of every row, or None if they differ."""

    folder: str
    index: int
    name: str
    dtype: str
    rank: int
    count: int
    shape: tuple[int, ...] | None

    @property
    def is_text(self) -> bool:
        return self.dtype == "string"

    def shape_of(self, row: int) -> tuple[int, ...]:
        """The shape of one row."""
        if self.shape is not None:
            return self.shape
        shape = _read(self._file("shapes"), np.dtype(np.int64), row * self.rank, self.rank)
        return tuple(shape.tolist())

    def read(self, start: int, stop: int) -> Array:
        """Rows of equal shape, stacked along a new first axis."""
        shape = self.shape_of(start)
        first, last = self._bounds(start, stop)
        return self._elements(first, last).reshape(stop - start, *shape)

    def row(self, index: int) -> Array:
        """One row."""
        array: Array = self.read(index, index + 1)[0, ...]
        return array

    def rows(self) -> Iterator[Array]:
        """Every row, one at a time."""
        return (self.row(index) for index in range(self.count))

    def blocks(self, elements: int = _BLOCK_ELEMENTS) -> Iterator[tuple[int, Array]]:
        """(first row, rows) of every row: about so many elements at once, or row by row where shapes
        differ."""
        size = 0 if self.shape is None else int(np.prod(self.shape, dtype=np.int64))
        step = 1 if self.shape is None else max(1, elements // max(size, 1))
        for first in range(0, self.count, step):
            yield first, self.read(first, min(first + step, self.count))

    def values(self) -> Rows:
        """The whole column in memory."""
        return self.read(0, self.count) if self.shape is not None else list(self.rows())

    def _bounds(self, start: int, stop: int) -> tuple[int, int]:
        """The elements that rows [start, stop) hold."""
        if self.shape is not None:
            size = int(np.prod(self.shape, dtype=np.int64))
            return start * size, stop * size
        ends = self._file("row_ends")
        first = int(_read(ends, np.dtype(np.int64), start - 1, 1)[0]) if start else 0
        return first, int(_read(ends, np.dtype(np.int64), stop - 1, 1)[0]) if stop else 0

    def _elements(self, first: int, last: int) -> Array:
        if not self.is_text:
            return _read(self._file("data"), numpy_dtype(self.dtype), first, last - first)
        ends = _read(self._file("ends"), np.dtype(np.int64), first, last - first).tolist()
        begin = 0
        if first:
            begin = int(_read(self._file("ends"), np.dtype(np.int64), first - 1, 1)[0])
        end = ends[-1] if ends else begin
        data = _read(self._file("data"), np.dtype(np.uint8), begin, end - begin).tobytes()
        starts = [begin, *ends[:-1]]
        texts = [
            data[a - begin : b - begin].decode(errors="surrogateescape")
            for a, b in zip(starts, ends, strict=False)
        ]
        return string_array(texts, (len(texts),))

    def _file(self, kind: str) -> Path:
        return Path(self.folder) / f"{self.index}.{kind}"


class ColumnWriter:
    """Writes a column piece by piece. `close` returns it."""

    def __init__(self, folder: Path, index: int, name: str) -> None:
        self._folder, self._index, self._name = folder, index, name
        self._data = (folder / f"{index}.data").open("wb")
        self._dtype: str | None = None
        self._shapes: list[tuple[tuple[int, ...], int]] = []  # runs of rows of equal shape
        self._ends: list[Array] = []  # of strings, in bytes
        self._bytes = 0

    def append(self, rows: Rows) -> None:
        """Adds rows, of the dtype and rank of those before."""
        if isinstance(rows, list):
            for row in rows:
                self._append_block(np.asarray(row)[None])
        elif len(rows):
            self._append_block(rows)

    def close(self) -> Column:
        self._data.close()
        rank = max((len(shape) for shape, _ in self._shapes), default=0)
        # A call of one row can't tell a leading 1 that counts rows from one that doesn't.
        self._shapes = [((1,) * (rank - len(s)) + s, length) for s, length in self._shapes]
        shapes = {shape for shape, _ in self._shapes}
        count = sum(length for _, length in self._shapes)
        if self._ends:
            self._write("ends", np.concatenate(self._ends))
        if len(shapes) > 1:
            lengths = [length for _, length in self._shapes]
            sizes = np.repeat([int(np.prod(s)) for s, _ in self._shapes], lengths)
            every = np.repeat([shape for shape, _ in self._shapes], lengths, axis=0)
            self._write("shapes", every.astype(np.int64))
            self._write("row_ends", np.cumsum(sizes, dtype=np.int64))
        shape = self._shapes[0][0] if len(shapes) == 1 else None if shapes else ()
        dtype = self._dtype or "float32"
        return Column(str(self._folder), self._index, self._name, dtype, rank, count, shape)

    def _append_block(self, block: Array) -> None:
        if block.dtype.kind in "USO":
            block = self._encode(block)
            name = "string"
        else:
            name = dtype_name(block.dtype)
            self._data.write(np.ascontiguousarray(block).tobytes())
        if self._dtype not in (None, name):
            raise ValueError(f"column {self._name!r} has {self._dtype} and {name}")
        self._dtype = name
        shape = block.shape[1:]
        if self._shapes and self._shapes[-1][0] == shape:
            self._shapes[-1] = (shape, self._shapes[-1][1] + len(block))
        else:
            self._shapes.append((shape, len(block)))

    def _encode(self, block: Array) -> Array:
        texts = [
            t if isinstance(t, bytes) else str(t).encode(errors="surrogateescape")
            for t in block.reshape(-1).tolist()
        ]
        self._data.write(b"".join(texts))
        ends = self._bytes + np.cumsum([len(t) for t in texts], dtype=np.int64)
        if len(ends):
            self._bytes = int(ends[-1])
        self._ends.append(ends)
        return block

    def _write(self, kind: str, array: Array) -> None:
        (self._folder / f"{self._index}.{kind}").write_bytes(np.ascontiguousarray(array).tobytes())


class ColumnFolder:
    """Columns by name, written in one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._writers: dict[str, ColumnWriter] = {}

    def append(self, rows: dict[str, Rows]) -> None:
        for name, values in rows.items():
            if name not in self._writers:
                self._writers[name] = ColumnWriter(self._folder, len(self._writers), name)
            self._writers[name].append(values)

    def close(self) -> dict[str, Column]:
        return {name: writer.close() for name, writer in self._writers.items()}


def columns_to_json(columns: dict[str, Column]) -> str:
    """The columns for another process; the data stay where they are."""
    return json.dumps([asdict(column) for column in columns.values()])


def columns_from_json(text: str) -> dict[str, Column]:
    """The columns that `columns_to_json` wrote."""
    entries: Sequence[dict[str, Any]] = json.loads(text)
    for entry in entries:
        entry["shape"] = None if entry["shape"] is None else tuple(entry["shape"])
    return {entry["name"]: Column(**entry) for entry in entries}


def _read(path: Path, dtype: np.dtype[Any], first: int, count: int) -> Array:
    if count == 0:
        return np.empty(0, dtype)
    size = dtype.itemsize
    data = np.fromfile(path, np.uint8, count * size, offset=first * size)
    array: Array = data.view(dtype)
    return array
