"""A metric on given outputs and targets, without a package."""

import tempfile
from pathlib import Path

import numpy as np

from neuropod.evaluation.batching import row_shape
from neuropod.evaluation.columns import ColumnFolder
from neuropod.evaluation.metrics import MetricContext, bind_metrics, parse_metrics
from neuropod.packaging.dtypes import dtype_name

INPUTS = [{"name": "x", "dtype": "float32", "shape": ["batch"]}]


def spec_of(name, rows, shape=None):
    first = np.asarray(rows[0] if isinstance(rows, list) else rows)
    if shape is None:
        shape = ["batch", *(first.shape if isinstance(rows, list) else first.shape[1:])]
    return {"name": name, "dtype": dtype_name(first.dtype), "shape": shape}


def context_of(outputs, targets, *, specs=(), target=None, classes=None):
    specs = list(specs) or [spec_of(name, rows) for name, rows in outputs.items()]
    return MetricContext(
        outputs=specs,
        row_shapes={spec["name"]: row_shape(spec, INPUTS, specs) for spec in specs},
        inputs=["x"],
        columns=["x", *targets],
        target=target,
        classes=classes,
        source="data.csv",
        where=lambda row: f"data.csv line {row + 2}",
    )


def score_of(metric, outputs, targets, **context):
    """The metric's score; a list of arrays is an output whose rows differ in shape."""
    (bound,) = bind_metrics(parse_metrics([metric]), context_of(outputs, targets, **context))
    chosen = {name: targets[name] for name in bound.targets}
    bound.check_targets(chosen)
    with tempfile.TemporaryDirectory() as folder:
        columns = ColumnFolder(Path(folder))
        columns.append(outputs)
        return bound.score(columns.close(), chosen)


def value_of(metric, outputs, targets, **context):
    return score_of(metric, outputs, targets, **context).value


def repeated(values, counts):
    """The rows, row i counts[i] times."""
    order = np.repeat(np.arange(len(counts)), counts)
    return [values[i] for i in order] if isinstance(values, list) else values[order]
