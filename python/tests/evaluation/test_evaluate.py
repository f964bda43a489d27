import json
import os
import signal

import numpy as np
import pytest
from echo_packages import write_package

from neuropod import NotFoundError
from neuropod.evaluation import DataError, EvaluationError, MetricError, evaluate


def test_packages_are_ranked_by_the_first_metric_with_intervals(scaled, rows):
    packages = [scaled("far", 0.5), scaled("near", 1.0), scaled("exact", 1.1)]
    result = evaluate(packages, rows, ["mae", "r2"])
    assert [p.name for p in result.ranked()] == ["exact.neuropod", "near.neuropod", "far.neuropod"]
    near = result.packages[1]
    wanted = abs(rows["x"] - rows["right"]).mean()
    assert near.metrics["mae"].value == pytest.approx(wanted, rel=1e-5)
    low, high = near.metrics["mae"].interval
    assert low < near.metrics["mae"].value < high
    assert result.rows == 100 and result.succeeded
    assert evaluate(packages, rows, ["r2"]).ranked()[0].name == "exact.neuropod"


def test_the_same_seed_gives_the_same_figures(scaled, rows):
    package = scaled("near", 1.0)
    first, second = (evaluate([package], rows, ["mae"], seed=3).packages[0] for _ in range(2))
    other = evaluate([package], rows, ["mae"], seed=4).packages[0]
    assert first.metrics["mae"].interval == second.metrics["mae"].interval
    assert first.metrics["mae"].interval != other.metrics["mae"].interval


def test_costs_are_measured_in_a_process_of_the_packages_own(scaled, rows):
    slow, fast = evaluate([scaled("slow", 1, sleep_ms=3), scaled("fast", 1)], rows).packages
    assert slow.resources.latency.percentile(50) >= 0.003
    assert slow.resources.latency.percentile(50) > fast.resources.latency.percentile(50)
    assert slow.resources.latency.throughput < 100 / 0.012
    # Less than this process needs, with scikit-learn in it.
    assert 5 << 20 < fast.resources.peak_memory < 400 << 20
    assert fast.resources.latency.calls >= 100  # four calls would say little
    assert fast.resources.load_seconds > 0


def test_rows_are_batched_along_the_batch_symbol_in_order(identity):
    package = identity(y=("float32", ["batch", 2]))
    data = {"in_y": np.arange(140).reshape(70, 2), "t": np.arange(140).reshape(70, 2)}
    result = evaluate([package], data, ["mae"], batch_size=32)
    assert result.packages[0].batch_symbol == "batch"
    assert result.packages[0].metrics["mae"].value == 0


@pytest.mark.parametrize(
    "shape", [[None, 2], [1, 2], [2], ["a", 2]], ids=["any", "one", "fixed", "symbol of the output"]
)
def test_rows_go_one_by_one_without_a_batch_symbol(identity, shape):
    package = identity(y=("float32", shape), other=("float32", ["n"]))
    data = {
        "in_y": np.arange(10).reshape(5, 2),
        "in_other": np.zeros((5, 3)),
        "t": np.arange(10).reshape(5, 2),
    }
    result = evaluate([package], data, ["mae:y"])
    assert result.packages[0].error is None
    assert result.packages[0].batch_symbol is None
    assert result.packages[0].metrics["mae:y"].value == 0


def test_rows_of_different_length_are_batched_with_their_like(identity, tmp_path):
    pq = pytest.importorskip("pyarrow.parquet")
    pa = pytest.importorskip("pyarrow")
    package = identity(y=("int64", ["batch", None]), n=("int64", ["batch"]))
    lengths = [2, 2, 2, 3, 3, 2]
    table = {"in_y": [[7] * n for n in lengths], "in_n": lengths, "length": lengths}
    pq.write_table(pa.table(table), tmp_path / "d.parquet")
    (tmp_path / "m.py").write_text(
        "def right(outputs, targets):\n"
        "    return [len(y) == n for y, n in zip(outputs['y'], targets['length'])]\n"
    )
    result = evaluate([package], tmp_path / "d.parquet", [f"{tmp_path}/m.py:right"])
    assert result.packages[0].error is None
    assert result.packages[0].metrics["right"].value == 1


def test_functions_of_a_file_are_metrics(scaled, rows, tmp_path):
    (tmp_path / "m.py").write_text(
        "def share(outputs, targets):\n"
        "    return abs(outputs['y'] - targets['right']) < 0.06\n"
        "def total(outputs, targets):\n"
        "    return float(outputs['y'].sum())\n"
        "total.higher_is_better = False\n"
        "def wrong(outputs, targets):\n"
        "    return [1, 2, 3]\n"
        "def raising(outputs, targets):\n"
        "    return targets['nothing']\n"
        "def silent(outputs, targets):\n"
        "    pass\n"
        "def leaving(outputs, targets):\n"
        "    exit(7)\n"
    )
    metrics = [
        f"{tmp_path}/m.py:{name}" for name in ("share", "total", "wrong", "raising", "shere")
    ]
    result = evaluate([scaled("a", 1.0)], rows, metrics[:2], resamples=20)
    package = result.packages[0]
    assert package.metrics["share"].value == (0.1 * rows["x"] < 0.06).mean()
    assert package.metrics["total"].value == pytest.approx(rows["x"].sum(), rel=1e-5)
    assert package.metrics["total"].interval[0] < package.metrics["total"].value
    assert [info.higher_is_better for info in result.metrics] == [True, False]
    error = evaluate([scaled("b", 1.0)], rows, [metrics[2]]).packages[0].error
    assert "returned shape (3,) for 100 rows; expected one number, or one per row" in error
    error = evaluate([scaled("c", 1.0)], rows, [metrics[3]]).packages[0].error
    assert "failed: KeyError: 'nothing'" in error
    error = evaluate([scaled("f", 1.0)], rows, [f"{tmp_path}/m.py:silent"]).packages[0].error
    assert "returned None; expected one number, or one per row (is a `return` missing?)" in error
    error = evaluate([scaled("g", 1.0)], rows, [f"{tmp_path}/m.py:leaving"]).packages[0].error
    assert "failed: SystemExit: 7" in error
    with pytest.raises(MetricError, match="has no function 'shere'; did you mean 'share'"):
        evaluate([scaled("d", 1.0)], rows, [metrics[4]])
    with pytest.raises(MetricError, match=r"none.py does not exist"):
        evaluate([scaled("e", 1.0)], rows, ["none.py:f"])


# Packages that fail


def test_a_package_that_fails_is_reported_and_the_others_go_on(scaled, rows):
    failing = scaled("failing", 1, fail_if_negative={"input": "x", "message": "no negatives"})
    data = {"x": np.r_[rows["x"][:64], [-1.0], rows["x"][65:]], "right": rows["right"]}
    result = evaluate([failing, scaled("fine", 1)], data, ["mae"])
    assert [p.name for p in result.ranked()] == ["fine.neuropod", "failing.neuropod"]
    assert "data row 64 to data row 95" in result.packages[0].error
    assert "no negatives" in result.packages[0].error
    assert result.packages[1].error is None
    assert not result.succeeded


def test_a_package_that_cannot_be_loaded_is_reported(scaled, rows):
    broken = scaled("broken", 1)
    (broken / "0" / "data" / "echo.json").write_text("{")
    result = evaluate([broken, scaled("fine", 1)], rows, ["mae"])
    assert "parse error at line 1" in result.packages[0].error
    assert result.packages[1].error is None


def test_a_process_that_dies_is_reported_with_its_signal(scaled, rows, monkeypatch):
    from neuropod.evaluation import runner

    class Dying(runner.WorkerProcess):
        def request(self, do, **values):
            if do == "run" and "dying" in self._printed.parent.name + str(values):
                raise AssertionError
            if do == "run":
                os.kill(self._process.pid, signal.SIGSEGV)
            return super().request(do, **values)

    monkeypatch.setattr(runner, "WorkerProcess", Dying)
    result = evaluate([scaled("a", 1)], rows, ["mae"])
    assert "its process was killed by SIGSEGV; it printed nothing" in result.packages[0].error


def test_nan_in_outputs_is_noted_with_its_row(scaled, rows):
    x = rows["x"].copy()
    x[[7, 30]] = np.nan
    result = evaluate([scaled("a", 1), scaled("b", 2)], {**rows, "x": x}, ["mae"])
    assert np.isnan(result.packages[0].metrics["mae"].value)
    assert result.packages[0].notes == ("output 'y' has NaN in 2 rows, first data row 7",)


# What is refused before anything runs


def test_packages_of_different_problem_apis_are_refused_with_the_difference(scaled, identity, rows):
    other = identity(y=("float32", ["batch"]))
    with pytest.raises(
        EvaluationError, match=r"model.neuropod solves another problem than .*input"
    ):
        evaluate([scaled("a", 1), other], rows, ["mae"])


def test_a_package_that_fulfils_the_first_ones_api_is_welcome(scaled, rows, tmp_path):
    wider = write_package(
        tmp_path / "wider.neuropod",
        inputs=[("x", "float32", ["batch"])],
        outputs=[("y", "float32", ["batch"]), ("more", "float32", ["batch"])],
        model={"outputs": {k: {"op": "identity", "input": "x"} for k in ("y", "more")}},
    )
    result = evaluate([scaled("a", 1), wider], rows, ["mae"])
    assert result.packages[1].metrics["mae"].value == result.packages[0].metrics["mae"].value
    with pytest.raises(EvaluationError, match="output 'more'"):
        evaluate([wider, scaled("b", 1)], rows, ["mae"])


def test_wrong_arguments_are_refused(scaled, rows):
    package = scaled("a", 1)
    with pytest.raises(EvaluationError, match="no package to evaluate"):
        evaluate([], rows)
    with pytest.raises(EvaluationError, match="is given twice"):
        evaluate([package, package], rows)
    with pytest.raises(EvaluationError, match="batch size is expected to be 1 or more, but is 0"):
        evaluate([package], rows, batch_size=0)
    with pytest.raises(EvaluationError, match="at least one other package"):
        evaluate([package], rows, ["mae"], baseline=package)
    with pytest.raises(EvaluationError, match="a baseline needs a metric"):
        evaluate([scaled("b", 1)], rows, baseline=package)
    with pytest.raises(MetricError, match="'mae' is given twice"):
        evaluate([package], rows, ["mae", "mae"])
    with pytest.raises(MetricError, match="no column 'rihgt'; did you mean 'right'"):
        evaluate([package], rows, ["mae"], target="rihgt")
    with pytest.raises(DataError, match="holds no rows"):
        evaluate([package], {"x": [], "right": []}, ["mae"])
    with pytest.raises(NotFoundError):
        evaluate(["nothing.neuropod"], rows, ["mae"])


# The gate


def test_the_gate_lets_pass_what_drops_no_further_than_allowed(scaled, rows):
    base, worse = scaled("base", 1.1), scaled("worse", 1.05)
    drop = float(abs(0.05 * rows["x"]).mean())
    passed = evaluate([worse], rows, ["mae"], baseline=base, max_drop=drop + 1e-6)
    assert passed.gate.passed and passed.succeeded
    failed = evaluate([worse], rows, ["mae"], baseline=base, max_drop=drop - 1e-3)
    assert not failed.gate.passed and not failed.succeeded
    (found,) = failed.gate.drops
    assert found.drop == pytest.approx(drop, rel=1e-4)
    assert found.interval[0] < found.drop < found.interval[1]
    assert "worse.neuropod: mae is" in found.text and "worse than" in found.text


def test_the_gate_knows_which_way_a_metric_is_better(scaled, rows):
    base, better = scaled("base", 1.0), scaled("better", 1.1)
    result = evaluate([better], rows, ["mae", "r2"], baseline=base)
    assert [drop.drop < 0 for drop in result.gate.drops] == [True, True]
    assert result.gate.passed
    assert not evaluate([base], rows, ["r2"], baseline=better).gate.passed


def test_the_gate_allows_drops_by_metric(scaled, rows):
    base, worse = scaled("base", 1.1), scaled("worse", 1.05)
    result = evaluate([worse], rows, ["mae", "r2"], baseline=base, max_drop={"mae": 0.5})
    assert [drop.passed for drop in result.gate.drops] == [True, False]
    with pytest.raises(EvaluationError, match=r"max-drop of 'mea'.*did you mean 'mae'"):
        evaluate([worse], rows, ["mae"], baseline=base, max_drop={"mea": 1})


def test_nan_never_passes_the_gate(scaled, rows):
    x = rows["x"].copy()
    x[0] = np.nan
    result = evaluate([scaled("a", 1)], {**rows, "x": x}, ["mae"], baseline=scaled("base", 1))
    assert not result.gate.passed


def test_what_failed_never_passes_the_gate(scaled, rows):
    good, broken = scaled("good", 1), scaled("broken", 1)
    (broken / "0" / "data" / "echo.json").write_text("{")
    for package, baseline in ((good, broken), (broken, good)):
        result = evaluate([package], rows, ["mae"], baseline=baseline)
        assert not result.succeeded and not result.gate.passed
        assert result.gate.not_compared == ("broken.neuropod",)
        assert result.to_dict()["gate"]["passed"] is False


def test_the_result_is_plain_values(scaled, rows):
    result = evaluate([scaled("a", 1)], rows, ["mae"], baseline=scaled("base", 1.1))
    document = json.loads(json.dumps(result.to_dict()))
    assert document["packages"][0]["metrics"]["mae"]["value"] == pytest.approx(0, abs=1e-6)
    assert document["gate"]["passed"] is False
