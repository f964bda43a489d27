"""What an evaluation found."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from neuropod.evaluation.gate import GateResult
from neuropod.evaluation.resources import PERCENTILES, Resources
from neuropod.packaging.arrays import Array


@dataclass(frozen=True)
class MetricInfo:
    label: str
    higher_is_better: bool


@dataclass(frozen=True)
class MetricValue:
    """`interval`: the 95 % bootstrap interval, None without resamples. `samples`: the resampled values,
    over the same draws for every package of the evaluation."""

    value: float
    interval: tuple[float, float] | None
    samples: Array = field(repr=False, default_factory=lambda: np.empty(0))


@dataclass(frozen=True)
class PackageResult:
    """One package. With `error`, it failed, and has neither metrics nor resources.

    `metrics`: by label. `notes`: what a reader of the figures should know.
    """

    name: str
    path: Path
    platform: str | None = None
    batch_symbol: str | None = None
    metrics: dict[str, MetricValue] = field(default_factory=dict)
    resources: Resources | None = None
    notes: tuple[str, ...] = ()
    error: str | None = None


@dataclass(frozen=True)
class EvaluationResult:
    """Packages in the order they were given; `ranked` sorts them."""

    packages: list[PackageResult]
    metrics: list[MetricInfo]
    data: str
    rows: int
    batch_size: int
    resamples: int
    seed: int
    gate: GateResult | None = None

    @property
    def succeeded(self) -> bool:
        """Every package ran, and the gate, if there is one, let all pass."""
        return not any(package.error for package in self.packages) and (
            self.gate is None or self.gate.passed
        )

    def ranked(self) -> list[PackageResult]:
        """By the first metric, best first; by throughput without one. NaN, then failed ones, last."""
        return sorted(self.packages, key=self._rank_key)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as `neuropod evaluate --json` prints them; docs/evaluation.md names them."""
        return {
            "data": self.data,
            "rows": self.rows,
            "batch_size": self.batch_size,
            "resamples": self.resamples,
            "seed": self.seed,
            "metrics": [
                {"name": metric.label, "higher_is_better": metric.higher_is_better}
                for metric in self.metrics
            ],
            "packages": [_package_dict(package) for package in self.ranked()],
            "gate": None if self.gate is None else self.gate.to_dict(),
            "succeeded": self.succeeded,
        }

    def to_html(self) -> str:
        """The report as one page that needs nothing but itself."""
        from neuropod.evaluation.report.evaluation_page import evaluation_page

        return evaluation_page(self)

    def _rank_key(self, package: PackageResult) -> tuple[int, float]:
        if package.error or package.resources is None:
            return 2, 0.0
        if not self.metrics:
            return 0, -package.resources.latency.throughput
        value = package.metrics[self.metrics[0].label].value
        if np.isnan(value):
            return 1, 0.0
        return 0, -value if self.metrics[0].higher_is_better else value


def resources_dict(resources: Resources) -> dict[str, Any]:
    """Plain values: seconds and bytes."""
    latency = resources.latency
    return {
        "latency_seconds": {
            "mean": latency.mean,
            **{f"p{percent}": latency.percentile(percent) for percent in PERCENTILES},
        },
        "calls": latency.calls,
        "rows_per_second": latency.throughput,
        "load_seconds": resources.load_seconds,
        "cpu_seconds": resources.cpu_seconds,
        "peak_memory_bytes": resources.peak_memory,
    }


def _package_dict(package: PackageResult) -> dict[str, Any]:
    result: dict[str, Any] = {
        "name": package.name,
        "path": str(package.path),
        "platform": package.platform,
        "error": package.error,
        "notes": list(package.notes),
    }
    if package.resources is not None:
        result["batch_symbol"] = package.batch_symbol
        result["metrics"] = {
            label: {"value": metric.value, "interval": _interval(metric.interval)}
            for label, metric in package.metrics.items()
        }
        result["resources"] = resources_dict(package.resources)
    return result


def _interval(interval: Sequence[float] | None) -> list[float] | None:
    return None if interval is None else list(interval)
