"""Data decoded once, for every package: the inputs in the problem API's dtypes, and the targets."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from neuropod.evaluation.batching import batch_symbol
from neuropod.evaluation.columns import Column, ColumnFolder, Rows
from neuropod.evaluation.datasets.dataset import Dataset
from neuropod.evaluation.datasets.fitting import fit_rows
from neuropod.evaluation.datasets.text_values import typed
from neuropod.evaluation.errors import DataError
from neuropod.evaluation.progress import Progress
from neuropod.packaging.nearest_name import did_you_mean
from neuropod.problem_api import ProblemAPI

Spec = Mapping[str, Any]


@dataclass(frozen=True)
class PreparedData:
    """`inputs` lie in files, which the packages' processes read; `targets` are in memory."""

    dataset: Dataset
    count: int
    inputs: dict[str, Column]
    targets: dict[str, Rows]

    def where(self, row: int) -> str:
        return self.dataset.where(row)


def prepare(
    dataset: Dataset,
    api: ProblemAPI,
    targets: Collection[str],
    folder: Path,
    limit: int | None,
    progress: Progress,
) -> PreparedData:
    """Reads the inputs' and the targets' columns into files in `folder`.

    `limit`: only so many rows. Raises DataError that names row and column, or if there are no rows.
    """
    specs = {spec["name"]: spec for spec in _given(api.inputs, dataset)}
    batched = batch_symbol(api.inputs, api.outputs) is not None
    wanted = [*specs, *(name for name in targets if name not in specs)]
    columns = ColumnFolder(folder)
    count = 0
    total = dataset.count if limit is None else min(limit, dataset.count or limit)
    with progress.task(f"reading {dataset.source}", total) as advance:
        for chunk in dataset.chunks(wanted):
            rows = len(next(iter(chunk.values())))
            kept = rows if limit is None else min(rows, limit - count)
            fitted = {name: values[:kept] for name, values in chunk.items()}
            for name, spec in specs.items():
                fitted[name] = fit_rows(fitted[name], spec, count, dataset.where, batched)
            columns.append(fitted)
            count += kept
            advance(kept)
            if count == limit:
                break
    if count == 0:
        raise DataError(f"{dataset.source} holds no rows")
    done = columns.close()
    return PreparedData(
        dataset,
        count,
        {name: done[name] for name in specs},
        {name: _target(done[name], dataset.untyped and name not in specs) for name in targets},
    )


def _given(inputs: Sequence[Spec], dataset: Dataset) -> list[Spec]:
    given = [spec for spec in inputs if spec["name"] in dataset.names]
    for spec in inputs:
        if spec not in given and not spec.get("optional"):
            raise DataError(
                f"{dataset.source} has no column for input {spec['name']!r}"
                f"{did_you_mean(spec['name'], dataset.names)}"
            )
    if not given:
        raise DataError(f"{dataset.source} has no column for any input")
    return given


def _target(column: Column, untyped: bool) -> Rows:
    values = column.values()
    return typed(values) if untyped and isinstance(values, np.ndarray) else values
