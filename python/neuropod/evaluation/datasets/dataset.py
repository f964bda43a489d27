"""What every kind of data offers: named columns, read in pieces, and a name for each row."""

from collections.abc import Collection, Iterator, Sequence
from typing import Protocol

from neuropod.evaluation.columns import Rows

CHUNK_ROWS = 1024


class Dataset(Protocol):
    """Rows that can be read more than once. Nothing is read but the names until `chunks` is used."""

    @property
    def source(self) -> str:
        """The file or folder, for messages."""

    @property
    def names(self) -> Sequence[str]:
        """All columns."""

    @property
    def count(self) -> int | None:
        """How many rows, where that is known without reading them."""

    @property
    def classes(self) -> Sequence[str] | None:
        """Class names in the order of the model's classes, where the data say so."""

    @property
    def untyped(self) -> bool:
        """Whether columns that are no inputs come as text, whatever they mean."""

    def where(self, row: int) -> str:
        """The row as its reader finds it: "data.csv line 7"."""

    def chunks(self, wanted: Collection[str]) -> Iterator[dict[str, Rows]]:
        """The wanted columns, piece by piece. Raises DataError."""
