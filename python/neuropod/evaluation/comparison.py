"""Two packages side by side: are their answers the same, and which is faster?"""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from neuropod.errors import ERROR_CLASSES, ModelError
from neuropod.evaluation.datasets import DataSettings, ImageSettings, open_dataset
from neuropod.evaluation.errors import EvaluationError
from neuropod.evaluation.packages import display_names, shared_problem_api
from neuropod.evaluation.parity import OutputParity, Tolerance, compare_output
from neuropod.evaluation.pipeline import PathLike
from neuropod.evaluation.prepared import PreparedData, prepare
from neuropod.evaluation.progress import Progress
from neuropod.evaluation.resources import Resources
from neuropod.evaluation.result import resources_dict
from neuropod.evaluation.runner import PackageRun, RunSettings, run_pair
from neuropod.evaluation.worker_process import PackageFailedError


@dataclass(frozen=True)
class ComparedPackage:
    name: str
    path: Path
    platform: str
    resources: Resources

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "path": str(self.path),
            "platform": self.platform,
            "resources": resources_dict(self.resources),
        }


@dataclass(frozen=True)
class ComparisonResult:
    """`where`: the worst rows' names. `max_disagreement`: the share of rows that may disagree."""

    a: ComparedPackage
    b: ComparedPackage
    outputs: list[OutputParity]
    data: str
    rows: int
    batch_size: int
    tolerance: Tolerance
    max_disagreement: float
    where: Mapping[int, str]

    @property
    def agrees(self) -> bool:
        """In every output, no larger share of rows disagrees than is allowed."""
        return all(output.disagreement <= self.max_disagreement for output in self.outputs)

    @property
    def speed_ratio(self) -> float:
        """A's median latency over B's: 2 means that B is twice as fast."""
        latencies = (self.a.resources.latency, self.b.resources.latency)
        return latencies[0].percentile(50) / latencies[1].percentile(50)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as `neuropod compare --json` prints them; docs/evaluation.md names them."""
        return {
            "a": self.a.to_dict(),
            "b": self.b.to_dict(),
            "data": self.data,
            "rows": self.rows,
            "batch_size": self.batch_size,
            "rtol": self.tolerance.relative,
            "atol": self.tolerance.absolute,
            "max_disagreement": self.max_disagreement,
            "agrees": self.agrees,
            "speed_ratio": self.speed_ratio,
            "outputs": [
                {
                    **output.to_dict(),
                    "worst_rows": [
                        {
                            "row": worst.row,
                            "where": self.where[worst.row],
                            "index": None if worst.index is None else list(worst.index),
                            "a": worst.a,
                            "b": worst.b,
                        }
                        for worst in output.worst
                    ],
                }
                for output in self.outputs
            ],
        }

    def to_html(self) -> str:
        """The report as one page that needs nothing but itself."""
        from neuropod.evaluation.report.comparison_page import comparison_page

        return comparison_page(self)


def compare(
    a: PathLike,
    b: PathLike,
    data: PathLike | Mapping[str, Any],
    *,
    rtol: float = 1e-4,
    atol: float = 1e-5,
    max_disagreement: float = 0.0,
    resize: bool = False,
    pixel_range: tuple[float, float] | None = None,
    batch_size: int = 32,
    limit: int | None = None,
    seed: int = 0,
    load_options: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> ComparisonResult:
    """Runs two packages on the same rows, taking turns, and compares every output of A with B's.

    Floating numbers agree if |a - b| <= atol + rtol * |a|, everything else if it's equal; NaN agrees
    with NaN only, and is counted apart. A row disagrees if one of its elements does. `seed` is of what is
    drawn in pictures. The other arguments are those of `evaluate`, and so are the errors; besides,
    what a package raised when it was loaded or run (WorkerDiedError if its process died).
    """
    paths = (Path(a), Path(b))
    if rtol < 0 or atol < 0 or not 0 <= max_disagreement <= 1 or batch_size < 1:
        raise EvaluationError(
            "rtol and atol are expected to be 0 or more, max_disagreement 0 to 1, batch_size 1 or "
            f"more; they are {rtol:g}, {atol:g}, {max_disagreement:g} and {batch_size}"
        )
    names = display_names(paths)
    api = shared_problem_api(paths)
    images = DataSettings(images=ImageSettings(resize, pixel_range))
    dataset = open_dataset(data if isinstance(data, Mapping) else Path(data), api.inputs, images)
    shown = progress or Progress()
    outputs = [spec["name"] for spec in api.outputs]
    settings = RunSettings(outputs, batch_size, load_options or {})
    tolerance = Tolerance(rtol, atol)
    with tempfile.TemporaryDirectory(prefix="neuropod-compare-") as temporary:
        folder = Path(temporary)
        (folder / "data").mkdir()
        prepared = prepare(dataset, api, (), folder / "data", limit, shown)
        runs = _run(paths, prepared, settings, folder, shown)
        parities = [
            compare_output(runs[0].outputs[name], runs[1].outputs[name], tolerance, seed)
            for name in outputs
        ]
    packages = [
        ComparedPackage(name, path, run.platform, run.resources)
        for name, path, run in zip(names, paths, runs, strict=True)
    ]
    where = {worst.row: prepared.where(worst.row) for p in parities for worst in p.worst}
    return ComparisonResult(
        packages[0],
        packages[1],
        parities,
        dataset.source,
        prepared.count,
        batch_size,
        tolerance,
        max_disagreement,
        where,
    )


def _run(
    paths: tuple[Path, Path],
    data: PreparedData,
    settings: RunSettings,
    folder: Path,
    progress: Progress,
) -> Sequence[PackageRun]:
    try:
        return run_pair(paths, data, settings, (folder / "a", folder / "b"), progress)
    except PackageFailedError as error:
        raise ERROR_CLASSES.get(error.code, ModelError)(str(error)) from error
