"""A gate for CI: no metric may be worse than the baseline's by more than is allowed."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from neuropod.evaluation.bootstrap import interval
from neuropod.evaluation.errors import EvaluationError
from neuropod.packaging.nearest_name import did_you_mean

if TYPE_CHECKING:
    from neuropod.evaluation.result import MetricInfo, PackageResult

# 0.97 - 0.96 is a little more than 0.01 in floating point.
_ROUNDING: Final = 1e-9


@dataclass(frozen=True)
class Drop:
    """How much worse one package is than the baseline in one metric.

    `drop`: positive if it's worse, whatever the metric's direction. `interval`: the paired 95 %
    bootstrap interval of the drop, for information.
    """

    package: str
    metric: str
    baseline: float
    value: float
    drop: float
    allowed: float
    interval: tuple[float, float] | None

    @property
    def passed(self) -> bool:
        return self.drop <= self.allowed + _ROUNDING  # False for NaN

    @property
    def text(self) -> str:
        """One line for a reader."""
        change = "worse" if self.drop > 0 else "better"
        amount = f"{abs(self.drop):.4g} {change}"
        if not abs(self.drop) > 0:
            amount = "not comparable" if math.isnan(self.drop) else "equal"
        return (
            f"{self.package}: {self.metric} is {self.value:.4g}, {amount} than {self.baseline:.4g} of the "
            f"baseline; {self.allowed:g} is allowed"
        )


@dataclass(frozen=True)
class GateResult:
    """`not_compared`: packages, the baseline maybe, that have no figures because they failed."""

    baseline: str
    drops: list[Drop]
    not_compared: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        return not self.not_compared and all(drop.passed for drop in self.drops)

    def to_dict(self) -> dict[str, Any]:
        return {
            "baseline": self.baseline,
            "passed": self.passed,
            "not_compared": list(self.not_compared),
            "drops": [
                {
                    "package": drop.package,
                    "metric": drop.metric,
                    "baseline": drop.baseline,
                    "value": drop.value,
                    "drop": drop.drop,
                    "allowed": drop.allowed,
                    "interval": None if drop.interval is None else list(drop.interval),
                    "passed": drop.passed,
                }
                for drop in self.drops
            ],
        }


def allowed_drops(
    max_drop: float | Mapping[str, float], metrics: Sequence[str]
) -> dict[str, float]:
    """How much worse each metric may be. EvaluationError for a metric that isn't computed."""
    if not isinstance(max_drop, Mapping):
        return dict.fromkeys(metrics, max_drop)
    for name in max_drop:
        if name not in metrics:
            raise EvaluationError(
                f"max-drop of {name!r}, no such metric{did_you_mean(name, metrics)}"
            )
    return {name: max_drop.get(name, 0.0) for name in metrics}


def check_gate(
    baseline: "PackageResult",
    others: Sequence["PackageResult"],
    metrics: Sequence["MetricInfo"],
    allowed: Mapping[str, float],
) -> GateResult:
    """Compares the packages that ran with the baseline, if that did."""
    failed = tuple(package.name for package in (baseline, *others) if package.error is not None)
    ran = [package for package in others if package.error is None]
    drops = []
    for package in ran if baseline.error is None else []:
        for metric in metrics:
            reference, found = baseline.metrics[metric.label], package.metrics[metric.label]
            sign = 1 if metric.higher_is_better else -1
            paired = sign * (reference.samples - found.samples)
            drops.append(
                Drop(
                    package.name,
                    metric.label,
                    reference.value,
                    found.value,
                    sign * (reference.value - found.value) + 0.0,  # no -0
                    allowed[metric.label],
                    interval(paired),
                )
            )
    return GateResult(baseline.name, drops, failed)
