"""Neuropod: package a trained model once, run it through one interface, whatever framework made it.

    from neuropod import load_neuropod

    with load_neuropod("detector.neuropod") as model:
        boxes = model.infer({"image": image})["boxes"]

Importing this package imports no framework, and NumPy only when a model is loaded.
"""

from neuropod.errors import (
    BackendNotFoundError,
    CancelledError,
    CorruptPackageError,
    InferenceTimeoutError,
    InvalidArgumentError,
    InvalidPackageError,
    LoadFailedError,
    ModelError,
    NeuropodError,
    NotFoundError,
    OutOfMemoryError,
    SpecMismatchError,
    UnavailableError,
    VersionConflictError,
    WorkerDiedError,
)
from neuropod.executor import Neuropod, load_neuropod
from neuropod.logs import set_log_format, set_log_level, set_log_sink
from neuropod.metrics import metrics_text, set_metrics_callback
from neuropod.ope_options import OPEOptions
from neuropod.problem_api import ApiDifference, ProblemAPI
from neuropod.random_model import create_random_neuropod

__version__ = "1.0.0"

__all__ = [
    "ApiDifference",
    "BackendNotFoundError",
    "CancelledError",
    "CorruptPackageError",
    "InferenceTimeoutError",
    "InvalidArgumentError",
    "InvalidPackageError",
    "LoadFailedError",
    "ModelError",
    "Neuropod",
    "NeuropodError",
    "NotFoundError",
    "OPEOptions",
    "OutOfMemoryError",
    "ProblemAPI",
    "SpecMismatchError",
    "UnavailableError",
    "VersionConflictError",
    "WorkerDiedError",
    "__version__",
    "create_random_neuropod",
    "load_neuropod",
    "metrics_text",
    "set_log_format",
    "set_log_level",
    "set_log_sink",
    "set_metrics_callback",
]
