"""Runs packages of one problem on the same data and computes metrics: the pipeline as a function."""

import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from neuropod.evaluation.batching import row_shape
from neuropod.evaluation.bootstrap import interval, resample
from neuropod.evaluation.columns import Column
from neuropod.evaluation.datasets import Dataset, DataSettings, ImageSettings, open_dataset
from neuropod.evaluation.errors import EvaluationError, MetricError
from neuropod.evaluation.gate import GateResult, allowed_drops, check_gate
from neuropod.evaluation.metrics import Metric, MetricContext, bind_metrics, parse_metrics
from neuropod.evaluation.metrics.metric import Score
from neuropod.evaluation.packages import display_names, shared_problem_api
from neuropod.evaluation.prepared import PreparedData, prepare
from neuropod.evaluation.progress import Progress
from neuropod.evaluation.result import EvaluationResult, MetricInfo, MetricValue, PackageResult
from neuropod.evaluation.runner import PackageRun, RunSettings, run_package
from neuropod.evaluation.worker_process import PackageFailedError
from neuropod.packaging.nearest_name import did_you_mean
from neuropod.problem_api import ProblemAPI

PathLike = str | os.PathLike[str]


@dataclass(frozen=True)
class _Finished:
    """A package that ran, and its scores."""

    result: PackageResult
    scores: list[Score]


def evaluate(
    packages: Sequence[PathLike],
    data: PathLike | Mapping[str, Any],
    metrics: Sequence[str] = (),
    *,
    target: str | None = None,
    classes: Sequence[str] | None = None,
    labels: PathLike | None = None,
    resize: bool = False,
    pixel_range: tuple[float, float] | None = None,
    batch_size: int = 32,
    limit: int | None = None,
    resamples: int = 1000,
    seed: int = 0,
    baseline: PathLike | None = None,
    max_drop: float | Mapping[str, float] = 0.0,
    load_options: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> EvaluationResult:
    """Runs each package, in a fresh process of its own, on the same rows in the same order.

    Args:
        packages: paths, of one problem API: the others must fulfil the first one's.
        data: an `.npz`, `.csv`, `.tsv` or `.parquet` file, a folder of images, or a dict of arrays whose
            first axis counts rows.
        metrics: "accuracy", "top5", "log_loss", "roc_auc", "mae", "mse", "r2", "coco_ap", "coco_ap50" or
            "FILE.py:FUNCTION"; with ":OUTPUT" or ":output=…,target=…" where it's not clear which. The
            first one ranks. Without any, only speed and memory are measured.
        target: the column with what is right, for metrics that don't name one.
        classes: the names of the classes, in the model's order.
        labels: of a folder of images: a table with the column "file", or COCO's annotations.
        resize: scale images to the model's size.
        pixel_range: what pixel values 0 and 255 become; None leaves them 0 and 255.
        batch_size: rows in a call, where the problem API has a batch symbol.
        limit: use only so many rows.
        resamples: of the bootstrap; 0 for no intervals.
        seed: of the bootstrap's generator.
        baseline: a package that the others are compared with (it is evaluated too); they fail if a metric
            is worse by more than `max_drop`, in the metric's own unit; a dict has it by metric.
        load_options: keyword arguments of `load_neuropod`, as JSON can carry them: threads,
            visible_device, require_signature …
        progress: where to show how far it is; None shows nothing.

    Returns:
        The figures of each package. One that can't be loaded or run has `error` instead.

    Raises:
        EvaluationError: the packages solve different problems, or an option can't be used.
        DataError: the data can't be read, are empty, or don't fit; the text names file and row.
        MetricError: a metric doesn't exist, or doesn't fit outputs or targets.
        NotFoundError, InvalidPackageError, CorruptPackageError: a package can't be read.
    """
    paths = _paths(packages, baseline)
    _check_numbers(batch_size=batch_size, limit=limit, resamples=resamples, seed=seed)
    names = display_names(paths)
    requests = parse_metrics(metrics)
    if baseline is not None and not requests:
        raise EvaluationError("a baseline needs a metric to compare by")
    api = shared_problem_api(paths)
    images = ImageSettings(resize, pixel_range)
    settings = DataSettings(Path(labels) if labels is not None else None, images)
    dataset = open_dataset(data if isinstance(data, Mapping) else Path(data), api.inputs, settings)
    context = _context(api, dataset, target, classes)
    bound = bind_metrics(requests, context)
    infos = [MetricInfo(metric.label, metric.higher_is_better) for metric in bound]
    allowed = allowed_drops(max_drop, [info.label for info in infos])
    shown = progress or Progress()
    wanted = list(dict.fromkeys(name for metric in bound for name in metric.outputs))
    run_settings = RunSettings(
        wanted or [spec["name"] for spec in api.outputs],
        batch_size,
        load_options or {},
    )
    with tempfile.TemporaryDirectory(prefix="neuropod-evaluate-") as temporary:
        folder = Path(temporary)
        prepared = _prepare(dataset, api, bound, folder, limit, shown)
        finished = [
            _run(path, name, prepared, bound, run_settings, folder / str(index), shown)
            for index, (path, name) in enumerate(zip(paths, names, strict=True))
        ]
        results = _with_intervals(finished, bound, prepared.count, resamples, seed, shown)
    return EvaluationResult(
        results,
        infos,
        dataset.source,
        prepared.count,
        batch_size,
        resamples,
        seed,
        _gate(results, infos, allowed) if baseline is not None else None,
    )


def _paths(packages: Sequence[PathLike], baseline: PathLike | None) -> list[Path]:
    """All packages, the baseline first."""
    if isinstance(packages, (str, os.PathLike)):
        packages = [packages]
    paths = [Path(package) for package in packages]
    if baseline is not None:
        first = Path(baseline)
        paths = [first, *(path for path in paths if path.resolve() != first.resolve())]
        if len(paths) < 2:
            raise EvaluationError("a baseline needs at least one other package to compare with it")
    if not paths:
        raise EvaluationError("there is no package to evaluate")
    return paths


def _check_numbers(batch_size: int, limit: int | None, resamples: int, seed: int) -> None:
    for what, value, least in (
        ("batch size", batch_size, 1),
        ("limit", 1 if limit is None else limit, 1),
        ("resamples", resamples, 0),
        ("seed", seed, 0),
    ):
        if value < least:
            raise EvaluationError(f"{what} is expected to be {least} or more, but is {value}")


def _context(
    api: ProblemAPI, dataset: Dataset, target: str | None, classes: Sequence[str] | None
) -> MetricContext:
    if target is not None and target not in dataset.names:
        raise MetricError(
            f"{dataset.source} has no column {target!r}{did_you_mean(target, dataset.names)}"
        )
    return MetricContext(
        outputs=api.outputs,
        row_shapes={s["name"]: row_shape(s, api.inputs, api.outputs) for s in api.outputs},
        inputs=[spec["name"] for spec in api.inputs],
        columns=list(dataset.names),
        target=target,
        classes=classes if classes is not None else dataset.classes,
        source=dataset.source,
        where=dataset.where,
    )


def _prepare(
    dataset: Dataset,
    api: ProblemAPI,
    metrics: Sequence[Metric],
    folder: Path,
    limit: int | None,
    progress: Progress,
) -> PreparedData:
    targets = list(dict.fromkeys(name for metric in metrics for name in metric.targets))
    columns = folder / "data"
    columns.mkdir()
    prepared = prepare(dataset, api, targets, columns, limit, progress)
    for metric in metrics:
        metric.check_targets(prepared.targets)
    return prepared


def _run(
    path: Path,
    name: str,
    data: PreparedData,
    metrics: Sequence[Metric],
    settings: RunSettings,
    folder: Path,
    progress: Progress,
) -> _Finished:
    try:
        run = run_package(path, data, settings, folder, progress)
        scores = [metric.score(run.outputs, data.targets) for metric in metrics]
    except (PackageFailedError, MetricError) as error:
        text = error.message if isinstance(error, MetricError) else str(error)
        return _Finished(PackageResult(name, path, error=text), [])
    result = PackageResult(
        name,
        path,
        run.platform,
        run.batch_symbol,
        resources=run.resources,
        notes=tuple(_nan_notes(run, data)),
    )
    return _Finished(result, scores)


def _nan_notes(run: PackageRun, data: PreparedData) -> list[str]:
    notes = []
    for column in run.outputs.values():
        rows = _rows_with_nan(column)
        if len(rows):
            count = f"{len(rows)} row{'s' if len(rows) > 1 else ''}"
            notes.append(f"output {column.name!r} has NaN in {count}, first {data.where(rows[0])}")
    return notes


def _rows_with_nan(column: Column) -> list[int]:
    if column.is_text or "float" not in column.dtype:
        return []
    rows: list[int] = []
    for first, block in column.blocks():
        flat = block.reshape(len(block), -1).astype(np.float64)
        rows += [first + int(row) for row in np.flatnonzero(np.isnan(flat).any(axis=1))]
    return rows


def _with_intervals(
    finished: Sequence[_Finished],
    metrics: Sequence[Metric],
    rows: int,
    resamples: int,
    seed: int,
    progress: Progress,
) -> list[PackageResult]:
    scores = [score for package in finished for score in package.scores]
    samples = iter(resample(scores, rows, resamples, seed, progress))
    results = []
    for package in finished:
        values = {}
        for metric, score in zip(metrics, package.scores, strict=False):
            drawn = next(samples)
            values[metric.label] = MetricValue(score.value, interval(drawn), drawn)
        package.result.metrics.update(values)
        results.append(package.result)
    return results


def _gate(
    results: Sequence[PackageResult], infos: Sequence[MetricInfo], allowed: Mapping[str, float]
) -> GateResult:
    baseline, *others = results
    return check_gate(baseline, others, infos, allowed)
