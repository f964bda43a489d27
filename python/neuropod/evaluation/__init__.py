"""Evaluating packages of one problem: the same data, metrics, speed and memory, whatever framework.

    from neuropod.evaluation import compare, evaluate

    result = evaluate(["old.neuropod", "new.neuropod"], "held_out.npz", ["accuracy", "log_loss"])
    for package in result.ranked():
        print(package.name, package.metrics["accuracy"].value, package.metrics["accuracy"].interval)

    assert compare("old.neuropod", "new.neuropod", "held_out.npz").agrees

Names are imported on first use: the processes of the packages need few of them, and their memory is
measured.
"""

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from neuropod.evaluation.comparison import ComparedPackage, ComparisonResult, compare
    from neuropod.evaluation.errors import DataError, EvaluationError, MetricError
    from neuropod.evaluation.gate import Drop, GateResult
    from neuropod.evaluation.metrics import METRIC_NAMES
    from neuropod.evaluation.parity import OutputParity, Tolerance
    from neuropod.evaluation.pipeline import evaluate
    from neuropod.evaluation.progress import Progress
    from neuropod.evaluation.resources import Latency, Resources
    from neuropod.evaluation.result import (
        EvaluationResult,
        MetricInfo,
        MetricValue,
        PackageResult,
    )

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

_MODULES: Final = {
    "comparison": ("ComparedPackage", "ComparisonResult", "compare"),
    "errors": ("DataError", "EvaluationError", "MetricError"),
    "pipeline": ("evaluate",),
    "gate": ("Drop", "GateResult"),
    "metrics": ("METRIC_NAMES",),
    "parity": ("OutputParity", "Tolerance"),
    "progress": ("Progress",),
    "resources": ("Latency", "Resources"),
    "result": ("EvaluationResult", "MetricInfo", "MetricValue", "PackageResult"),
}


def __getattr__(name: str) -> Any:
    import importlib

    for module, names in _MODULES.items():
        if name in names:
            value = getattr(importlib.import_module(f"{__name__}.{module}"), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
