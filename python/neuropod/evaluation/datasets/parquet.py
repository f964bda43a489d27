"""Tables in Parquet, read in batches of rows; lists are tensors, and may differ in length."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from neuropod.evaluation.columns import Rows
from neuropod.evaluation.datasets.dataset import CHUNK_ROWS
from neuropod.evaluation.datasets.grouping import ColumnGroup, group_columns
from neuropod.evaluation.errors import DataError
from neuropod.packaging.arrays import Array


class ParquetDataset:
    """A `.parquet` file. Needs pyarrow."""

    classes: Sequence[str] | None = None
    untyped = False

    def __init__(self, path: Path, inputs: Sequence[Mapping[str, Any]]) -> None:
        try:
            from pyarrow import ArrowException
            from pyarrow.parquet import ParquetFile
        except ImportError as error:
            raise DataError(
                f"reading {path} takes pyarrow: `pip install 'neuropod[parquet]'`"
            ) from error
        self.source = str(path)
        try:
            self._file = ParquetFile(path)
        except (ArrowException, OSError, ValueError) as error:
            raise DataError(f"{path} can't be read as Parquet: {error}") from error
        headers = [n for n in self._file.schema_arrow.names if not n.startswith("__index_level_")]
        known = {spec["name"] for spec in inputs}
        self._groups = group_columns(headers, known, self.source)
        self.names = list(self._groups)
        self.count: int | None = self._file.metadata.num_rows

    def where(self, row: int) -> str:
        return f"{self.source} row {row}"

    def chunks(self, wanted: Collection[str]) -> Iterator[dict[str, Rows]]:
        members = [member for name in wanted for member in self._groups[name].members]
        first = 0
        for batch in self._file.iter_batches(batch_size=CHUNK_ROWS, columns=members):
            columns = {
                member: self._rows(batch.column(batch.schema.names.index(member)), member, first)
                for member in members
            }
            yield {name: _joined(self._groups[name], columns) for name in wanted}
            first += batch.num_rows

    def _rows(self, values: Any, name: str, first: int) -> Rows:
        import pyarrow as pa

        if values.null_count:
            row = first + int(np.argmax(values.is_null().to_numpy(zero_copy_only=False)))
            raise DataError(f"{self.where(row)}, column {name!r}: a null, expected a value")
        kind = values.type
        if pa.types.is_list(kind) or pa.types.is_large_list(kind):
            return self._lists(values.to_pylist(), name, first)
        if pa.types.is_fixed_size_list(kind):
            inner = self._rows(values.flatten(), name, first)
            if not isinstance(inner, list):
                return inner.reshape(len(values), kind.list_size, *inner.shape[1:])
            return self._lists(values.to_pylist(), name, first)
        array: Array = values.to_numpy(zero_copy_only=False)
        is_text = array.dtype.kind == "O" and all(isinstance(v, (str, bytes)) for v in array)
        if not is_text and array.dtype.kind not in "biufUS":
            raise DataError(
                f"{self.source}, column {name!r} holds {kind}; expected numbers, strings or lists"
            )
        return array

    def _lists(self, rows: list[Any], name: str, first: int) -> Rows:
        result = []
        for index, row in enumerate(rows):
            try:
                array = np.asarray(row)
            except ValueError as error:
                raise DataError(
                    f"{self.where(first + index)}, column {name!r}: inner lists differ in length"
                ) from error
            if array.dtype.kind not in "biufU":
                raise DataError(
                    f"{self.where(first + index)}, column {name!r}: a list with a null or a "
                    "structure, expected numbers or strings"
                )
            result.append(array)
        typed = [array.dtype for array in result if array.size]
        if typed:
            # An empty list doesn't say what it is a list of.
            result = [a if a.size else a.astype(typed[0]) for a in result]
        if len({array.shape for array in result}) == 1:
            return np.stack(result)
        return result


def _joined(group: ColumnGroup, columns: Mapping[str, Rows]) -> Rows:
    if not group.shape:
        return columns[group.members[0]]
    parts = [np.asarray(columns[member]) for member in group.members]
    stacked = np.stack(parts, axis=1)
    return stacked.reshape(len(stacked), *group.shape, *stacked.shape[2:])
