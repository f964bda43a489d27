"""neuropod.metrics_text(), read by Prometheus' own parser."""

import os
import re
import signal
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families

import neuropod

ONES = np.ones(4, "float32")
GOLDEN = Path(__file__).with_name("metrics_text.golden")
WORKER_GOLDEN = Path(__file__).with_name("metrics_text_of_workers.golden")

Writer = Callable[..., Path]


def families() -> dict[str, Metric]:
    return {
        family.name: family for family in text_string_to_metric_families(neuropod.metrics_text())
    }


def value(sample: str, **labels: str) -> float:
    """The value of the only sample of that name whose labels include `labels`."""
    (found,) = [
        s.value
        for family in families().values()
        for s in family.samples
        if s.name == sample and labels.items() <= s.labels.items()
    ]
    return found


def test_prometheus_reads_all_of_it(model: neuropod.Neuropod) -> None:
    for _ in range(5):
        model.infer({"x": ONES})
    with pytest.raises(neuropod.ModelError):
        model.infer({"x": -ONES})
    assert value("neuropod_calls_total", model="identity") == 6
    assert value("neuropod_call_errors_total", model="identity", code="model_error") == 1
    assert value("neuropod_call_errors_total", model="identity", code="timeout") == 0
    assert value("neuropod_call_duration_seconds_count", model="identity") == 5
    assert value("neuropod_call_duration_seconds_bucket", model="identity", le="+Inf") == 5
    assert value("neuropod_call_phase_duration_seconds_count", phase="framework") == 5
    assert value("neuropod_input_bytes_total", model="identity") == 6 * 16
    for family in families().values():
        assert family.documentation.endswith((".", "; always 1."))
        assert family.type in ("counter", "gauge", "histogram")
        assert family.name.startswith("neuropod_")


def test_histograms_are_cumulative_and_agree_with_stats(model: neuropod.Neuropod) -> None:
    for _ in range(200):
        model.infer({"x": ONES})
    samples = families()["neuropod_call_duration_seconds"].samples
    counts = [s.value for s in samples if s.name.endswith("_bucket")]
    assert counts == sorted(counts) and counts[-1] == 200
    bounds = [float(s.labels["le"]) for s in samples if s.name.endswith("_bucket")]
    assert bounds == sorted(bounds) and bounds[0] == 1e-6 and bounds[-2:] == [60, float("inf")]
    total = model.stats()["latency"]["total"]
    assert value("neuropod_call_duration_seconds_sum") == pytest.approx(total["total_seconds"])


def test_a_freed_models_series_are_gone(write_package: Writer) -> None:
    model = neuropod.load_neuropod(write_package("short_lived"))
    assert 'model="short_lived"' in neuropod.metrics_text()
    model.close()
    assert "short_lived" not in neuropod.metrics_text()


def test_no_series_is_there_twice(write_package: Writer) -> None:
    path = write_package("twin")
    with neuropod.load_neuropod(path), neuropod.load_neuropod(path):
        series = [
            (s.name, tuple(sorted(s.labels.items())))
            for f in families().values()
            for s in f.samples
        ]
        assert len(series) == len(set(series))


@pytest.mark.parametrize("name", ['quote " backslash \\ line\nend', "Grüße 你好", "a{b}=,"])
def test_any_name_survives(write_package: Writer, name: str) -> None:
    with neuropod.load_neuropod(write_package(name)):
        assert value("neuropod_calls_total", model=name) == 0


def test_a_path_that_is_no_text_is_written_as_text(write_package: Writer, tmp_path: Path) -> None:
    path = write_package().rename(tmp_path / "\udcff\udcfe")
    with neuropod.load_neuropod(path):
        (sample,) = families()["neuropod_model_info"].samples
        assert sample.labels["path"] == f"{tmp_path}/��"


def test_failed_loads_are_counted_by_code(tmp_path: Path) -> None:
    before = value("neuropod_model_load_failures_total", code="not_found")
    with pytest.raises(neuropod.NotFoundError):
        neuropod.load_neuropod(tmp_path / "nothing")
    assert value("neuropod_model_load_failures_total", code="not_found") == before + 1


def names_labels_and_bounds() -> list[str]:
    text = neuropod.metrics_text()
    text = re.sub(r'load_id="\d+"', 'load_id="N"', text)
    text = re.sub(r'path="[^"]*"', 'path="P"', text)
    text = re.sub(r'version="\d[^"]*"', 'version="V"', text)
    return [line if line.startswith("#") else line.rpartition(" ")[0] for line in text.splitlines()]


def test_names_labels_and_bounds_are_those_of_the_golden_file(model: neuropod.Neuropod) -> None:
    """Dashboards and alerts hang on them. A change is one for the change log; write the new text by
    replacing the golden file with the one that the failure shows."""
    assert names_labels_and_bounds() == GOLDEN.read_text().splitlines()


def test_a_model_in_a_worker_has_these_series_more(remote_model: neuropod.Neuropod) -> None:
    golden = GOLDEN.read_text().splitlines()
    lines = names_labels_and_bounds()
    assert [line for line in golden if line not in lines] == []
    assert [line for line in lines if line not in golden] == WORKER_GOLDEN.read_text().splitlines()


def test_a_models_deaths_and_restarts_are_counted(remote_model: neuropod.Neuropod) -> None:
    remote_model.infer({"x": ONES})
    assert value("neuropod_worker_deaths_total", model="identity") == 0
    os.kill(remote_model.workers()[0]["pid"], signal.SIGKILL)
    remote_model.infer({"x": ONES})
    assert value("neuropod_worker_deaths_total", model="identity") == 1
    assert value("neuropod_worker_restarts_total", model="identity") == 1
    assert value("neuropod_call_phase_duration_seconds_count", phase="queue") == 2
