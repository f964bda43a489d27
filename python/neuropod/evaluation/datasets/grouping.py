"""Tables have scalar columns; `x[0]`, `x[1]` … (or `x.0`, `x.1` …) together are one tensor `x`."""

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from neuropod.evaluation.errors import DataError

_INDEXED = re.compile(r"(?P<name>.+?)(?P<index>(?:\[\d+(?:,\s*\d+)*\])+|(?:\.\d+)+)")
_SHOWN = 3


@dataclass(frozen=True)
class ColumnGroup:
    """One tensor: the shape of its rows, and the table's columns in row-major order."""

    name: str
    shape: tuple[int, ...]
    members: tuple[str, ...]


def group_columns(
    headers: Sequence[str], inputs: Collection[str], source: str
) -> dict[str, ColumnGroup]:
    """The tensors of a table by name. DataError if a column occurs twice or an element is missing."""
    twice = [name for name, count in Counter(headers).items() if count > 1]
    if twice:
        raise DataError(f"{source} has the column {twice[0]!r} twice; give each a name of its own")
    elements: dict[str, dict[tuple[int, ...], str]] = {}
    for header in headers:
        match = None if header in inputs else _INDEXED.fullmatch(header)
        name = match["name"] if match else header
        index = tuple(int(i) for i in re.findall(r"\d+", match["index"])) if match else ()
        elements.setdefault(name, {})[index] = header
    return {name: _group(name, found, source) for name, found in elements.items()}


def _group(name: str, found: dict[tuple[int, ...], str], source: str) -> ColumnGroup:
    ranks = {len(index) for index in found}
    if len(ranks) > 1:
        raise DataError(
            f"{source}: the columns {', '.join(map(repr, sorted(found.values())[:_SHOWN]))} "
            f"have indices of different length; {name!r} can't be one tensor"
        )
    shape = tuple(max(sizes) + 1 for sizes in zip(*found, strict=True))
    missing = [index for index in np.ndindex(*shape) if index not in found]
    if missing:
        raise DataError(
            f"{source}: {name!r} has columns up to {found[max(found)]!r}, but none for "
            f"index {list(missing[0])}; a tensor needs a column for each element"
        )
    return ColumnGroup(name, shape, tuple(found[index] for index in np.ndindex(*shape)))
