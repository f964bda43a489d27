import json

import numpy as np
import pytest

from neuropod import ModelError
from neuropod.evaluation import EvaluationError, compare


def test_packages_that_give_the_same_agree(scaled, rows):
    result = compare(scaled("a", 2), scaled("b", 2), rows)
    assert result.agrees
    assert result.outputs[0].rows == 100
    assert result.speed_ratio > 0
    assert {p.resources.latency.calls for p in (result.a, result.b)} == {100}


def test_packages_that_differ_disagree_by_row(scaled, rows):
    data = {"x": np.r_[np.zeros(90), np.ones(10)]}
    packages = scaled("a", 2), scaled("b", 2.01)
    result = compare(*packages, data)
    assert not result.agrees
    assert result.outputs[0].disagreement == pytest.approx(0.1)
    assert result.where[result.outputs[0].worst[0].row] == "data row 90"
    assert compare(*packages, data, max_disagreement=0.1).agrees
    assert compare(*packages, data, atol=0.011).agrees


def test_nan_in_one_is_a_disagreement_that_no_tolerance_hides(scaled):
    # Infinity times 0 is NaN, times 1 it isn't.
    one, zero = scaled("one", 1), scaled("zero", 0)
    result = compare(one, zero, {"x": [0.0, np.inf, np.nan]}, atol=1e30, rtol=1)
    assert not result.agrees
    (output,) = result.outputs
    assert (output.nan_only_a, output.nan_only_b, output.nan_both) == (0, 1, 1)
    assert [(worst.row, worst.a, worst.b) for worst in output.worst] == [(1, "inf", "nan")]
    assert result.to_dict()["outputs"][0]["nan_only_b"] == 1


def test_every_output_is_compared(identity):
    one = identity("one", y=("float32", ["batch"]), text=("string", ["batch"]))
    two = identity("two", y=("float32", ["batch"]), text=("string", ["batch"]))
    data = {"in_y": [1.0, 2.0], "in_text": ["a", "b"]}
    result = compare(one, two, data)
    assert [output.name for output in result.outputs] == ["y", "text"]
    assert result.agrees
    assert json.loads(json.dumps(result.to_dict()))["agrees"] is True


def test_a_package_that_fails_ends_the_comparison_with_its_name_and_rows(scaled, rows):
    failing = scaled("failing", 1, fail_if_negative={"input": "x", "message": "no negatives"})
    data = {"x": np.r_[np.ones(40), -np.ones(1)]}
    with pytest.raises(ModelError, match=r"failing.neuropod: data row 40: .*no negatives"):
        compare(scaled("fine", 1), failing, data, batch_size=8)


def test_what_cannot_be_compared_is_refused(scaled, identity, rows):
    a = scaled("a", 1)
    with pytest.raises(EvaluationError, match="solves another problem"):
        compare(a, identity(y=("float32", ["batch"])), rows)
    with pytest.raises(EvaluationError, match="max_disagreement 0 to 1"):
        compare(a, scaled("b", 1), rows, max_disagreement=2)
    with pytest.raises(EvaluationError, match="is given twice"):
        compare(a, a, rows)
