"""How rows become calls: along the batch symbol, or one by one.

The batch symbol is the leading symbol that all inputs and outputs share. Where there is one, a call
takes as many rows as the batch size says, of equal shape otherwise. Where there is none, a call takes
one row; an input whose spec has one dimension more than the row gets a leading dimension of 1.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from neuropod.errors import ModelError
from neuropod.evaluation.columns import Column, Rows
from neuropod.packaging.arrays import Array

Spec = Mapping[str, Any]


def batch_symbol(inputs: Sequence[Spec], outputs: Sequence[Spec]) -> str | None:
    """The leading symbol that all tensors share, or None."""
    leading = {spec["shape"][0] if spec["shape"] else None for spec in (*inputs, *outputs)}
    symbol = next(iter(leading)) if len(leading) == 1 else None
    return symbol if isinstance(symbol, str) else None


def takes_leading_one(spec: Spec) -> bool:
    """Whether the leading dimension may be 1."""
    shape = spec["shape"]
    return bool(shape) and (shape[0] == 1 or shape[0] is None or isinstance(shape[0], str))


def row_shape(spec: Spec, inputs: Sequence[Spec], outputs: Sequence[Spec]) -> list[Any]:
    """What one row of an output looks like, as a spec's shape, as far as it is known before a call."""
    symbol = batch_symbol(inputs, outputs)
    leading = {given["shape"][0] for given in inputs if given["shape"]}
    if symbol is not None or (
        takes_leading_one(spec)
        and all(takes_leading_one(given) for given in inputs)
        and (spec["shape"][0] in (1, None) or spec["shape"][0] in leading)
    ):
        return list(spec["shape"][1:])
    return list(spec["shape"])


@dataclass(frozen=True)
class BatchPlan:
    """How one model takes the rows. `stacked`: inputs whose first dimension counts rows."""

    symbol: str | None
    stacked: frozenset[str]
    squeezed: frozenset[str]
    """Outputs whose first dimension counts rows, if it is 1 in each call of one row."""

    @staticmethod
    def of(
        inputs: Sequence[Spec], outputs: Sequence[Spec], columns: Mapping[str, Column]
    ) -> "BatchPlan":
        """The plan for a model whose inputs have these columns."""
        given = [spec for spec in inputs if spec["name"] in columns]
        stacked = frozenset(
            spec["name"]
            for spec in given
            if columns[spec["name"]].rank == len(spec["shape"]) - 1 and takes_leading_one(spec)
        )
        all_stacked = len(stacked) == len(given) and bool(given)
        symbol = batch_symbol(inputs, outputs) if all_stacked else None
        leading = {spec["shape"][0] for spec in given if spec["name"] in stacked}
        squeezed = frozenset(
            spec["name"]
            for spec in outputs
            if stacked and takes_leading_one(spec) and spec["shape"][0] in {1, None, *leading}
        )
        return BatchPlan(symbol, stacked, squeezed)

    def calls(self, columns: Mapping[str, Column], batch_size: int) -> Iterator[tuple[int, int]]:
        """The rows [start, stop) of each call, in order."""
        count = min(column.count for column in columns.values())
        size = batch_size if self.symbol is not None else 1
        ragged = [column for column in columns.values() if column.shape is None]
        start = 0
        while start < count:
            stop = min(start + size, count)
            if ragged:
                shapes = [column.shape_of(start) for column in ragged]
                for row in range(start + 1, stop):
                    if [column.shape_of(row) for column in ragged] != shapes:
                        stop = row
                        break
            yield start, stop
            start = stop

    def feed(self, columns: Mapping[str, Column], start: int, stop: int) -> dict[str, Array]:
        """The inputs of one call."""
        return {
            name: column.read(start, stop) if name in self.stacked else column.row(start)
            for name, column in columns.items()
        }

    def split(self, outputs: Mapping[str, Array], rows: int) -> dict[str, Rows]:
        """The outputs of one call by row. ModelError if an output isn't as long as the batch."""
        result: dict[str, Rows] = {}
        for name, array in outputs.items():
            if self.symbol is not None:
                if array.ndim == 0 or len(array) != rows:
                    raise ModelError(
                        f"output {name!r} has shape {array.shape} for a batch of {rows} rows; "
                        f"its first dimension, {self.symbol!r}, is expected to be {rows}"
                    )
                result[name] = array
            elif name in self.squeezed and array.ndim > 0 and len(array) == 1:
                result[name] = array
            else:
                result[name] = [array]
        return result
