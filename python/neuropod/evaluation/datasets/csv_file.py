"""Tables in CSV: a header, then a row per line."""

import csv
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from neuropod.evaluation.columns import Rows
from neuropod.evaluation.datasets.dataset import CHUNK_ROWS
from neuropod.evaluation.datasets.grouping import ColumnGroup, group_columns
from neuropod.evaluation.datasets.text_values import parse_values
from neuropod.evaluation.errors import DataError
from neuropod.packaging.arrays import Array


class CsvDataset:
    """A `.csv` (or, with tabs, `.tsv`) file in UTF-8, read line by line."""

    count: int | None = None
    classes: Sequence[str] | None = None
    untyped = True

    def __init__(self, path: Path, inputs: Sequence[Mapping[str, Any]]) -> None:
        self.source = str(path)
        self._path = path
        self._dtypes = {spec["name"]: spec["dtype"] for spec in inputs}
        with self._lines() as lines:
            self._header = next(lines, (0, []))[1]
        if not self._header:
            raise DataError(f"{path} is empty; expected a header with the columns' names")
        self._groups = group_columns(self._header, self._dtypes, self.source)
        self.names = list(self._groups)
        self._line_numbers: list[int] = []

    def where(self, row: int) -> str:
        known = row < len(self._line_numbers)
        return f"{self.source} line {self._line_numbers[row] if known else row + 2}"

    def chunks(self, wanted: Collection[str]) -> Iterator[dict[str, Rows]]:
        self._line_numbers.clear()
        with self._lines() as lines:
            next(lines)
            while chunk := list(islice(lines, CHUNK_ROWS)):
                self._check_lengths(chunk)
                self._line_numbers += [number for number, _ in chunk]
                yield {name: self._column(self._groups[name], chunk) for name in wanted}

    def _column(self, group: ColumnGroup, chunk: list[tuple[int, list[str]]]) -> Array:
        positions = [self._header.index(member) for member in group.members]
        cells = [row[position] for _, row in chunk for position in positions]

        def where(cell: int) -> str:
            row, element = divmod(cell, len(positions))
            return f"{self.source} line {chunk[row][0]}, column {group.members[element]!r}"

        values = parse_values(cells, self._dtypes.get(group.name, "string"), where)
        return values.reshape(len(chunk), *group.shape)

    def _check_lengths(self, chunk: list[tuple[int, list[str]]]) -> None:
        for number, row in chunk:
            if len(row) != len(self._header):
                raise DataError(
                    f"{self.source} line {number} has {len(row)} cells, expected "
                    f"{len(self._header)} as in the header"
                )

    def _lines(self) -> "_Lines":
        return _Lines(self._path)


class _Lines:
    """The rows with their line numbers; blank lines are no rows."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> Iterator[tuple[int, list[str]]]:
        self._file = self._path.open(encoding="utf-8-sig", newline="")
        return self._read()

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def _read(self) -> Iterator[tuple[int, list[str]]]:
        delimiter = "\t" if self._path.suffix.lower() == ".tsv" else ","
        reader = csv.reader(self._file, delimiter=delimiter, strict=True)
        try:
            for row in reader:
                if row:
                    yield reader.line_num, row
        except UnicodeDecodeError as error:
            raise DataError(
                f"{self._path} is not UTF-8 after line {reader.line_num}: {error.reason}"
            ) from error
        except csv.Error as error:
            raise DataError(f"{self._path} line {reader.line_num}: {error}") from error
