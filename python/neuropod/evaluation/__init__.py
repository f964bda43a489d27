"""Evaluating packages of one problem: the same data, metrics, speed and memory, whatever framework.

from neuropod.evaluation import compare, evaluate

result = evaluate(["old.neuropod", "new.neuropod"], "held_out.npz", ["accuracy", "log_loss"])
for package in result.ranked():
    print(package.name, package.metrics["accuracy"].value, package.metrics["accuracy"].interval)

assert compare("old.neuropod", "new.neuropod", "held_out.npz").agrees
"""

from neuropod.evaluation.comparison import ComparedPackage, ComparisonResult, compare
from neuropod.evaluation.errors import DataError, EvaluationError, MetricError
from neuropod.evaluation.evaluate import evaluate
from neuropod.evaluation.gate import Drop, GateResult
from neuropod.evaluation.metrics import METRIC_NAMES
from neuropod.evaluation.parity import OutputParity, Tolerance
from neuropod.evaluation.progress import Progress
from neuropod.evaluation.resources import Latency, Resources
from neuropod.evaluation.result import EvaluationResult, MetricInfo, MetricValue, PackageResult

__all__ = [
    "METRIC_NAMES",
    "ComparedPackage",
    "ComparisonResult",
    "DataError",
    "Drop",
    "EvaluationError",
    "EvaluationResult",
    "GateResult",
    "Latency",
    "MetricError",
    "MetricInfo",
    "MetricValue",
    "OutputParity",
    "PackageResult",
    "Progress",
    "Resources",
    "Tolerance",
    "compare",
    "evaluate",
]
