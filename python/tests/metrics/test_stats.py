"""model.stats()."""

import contextlib
import pprint
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import neuropod

ONES = np.ones(4, "float32")


def test_counts_what_the_model_did(model: neuropod.Neuropod) -> None:
    for _ in range(3):
        model.infer({"x": ONES})
    stats = model.stats()
    assert stats["collected"]
    assert stats["calls"] == 3
    assert stats["calls_in_flight"] == 0
    assert stats["errors"] == {}
    assert stats["input_bytes"] == stats["output_bytes"] == 3 * 16
    assert stats["copied_bytes"] == 0
    assert stats["load_seconds"] > 0
    assert 0 < stats["cpu_seconds"] <= stats["latency"]["total"]["total_seconds"] * 1.001
    assert stats["allocator"] == model.allocator_stats


def test_a_latency_has_quantiles_and_counts_by_bound(model: neuropod.Neuropod) -> None:
    for _ in range(100):
        model.infer({"x": ONES})
    for part in model.stats()["latency"].values():
        latency = dict(part)
        assert latency["count"] == 100
        assert latency["mean_seconds"] == pytest.approx(latency["total_seconds"] / 100)
        assert latency["p50_seconds"] <= latency["p95_seconds"] <= latency["p99_seconds"]
        assert latency["p99_seconds"] <= latency["max_seconds"]
        counts = list(latency["up_to"].values())
        assert counts == sorted(counts)
        assert counts[-1] == 100 and 0 not in counts


def test_failed_calls_are_counted_by_code_and_not_timed(model: neuropod.Neuropod) -> None:
    with pytest.raises(neuropod.ModelError):
        model.infer({"x": -ONES})
    with pytest.raises(neuropod.SpecMismatchError):
        model.infer({"z": ONES})
    with pytest.raises(neuropod.NotFoundError):
        model.infer({"x": ONES}, ["z"])
    stats = model.stats()
    assert stats["calls"] == 3
    assert stats["errors"] == {"model_error": 1, "spec_mismatch": 1, "not_found": 1}
    assert stats["latency"]["total"]["count"] == 0


def test_inputs_that_had_to_be_copied_are_counted(model: neuropod.Neuropod) -> None:
    def copied(value: object) -> int:
        before = model.stats()["copied_bytes"]
        model.infer({"x": value})
        return model.stats()["copied_bytes"] - before

    read_only = ONES.copy()
    read_only.flags.writeable = False
    assert copied(ONES) == 0
    assert copied(memoryview(ONES)) == 0
    assert copied(read_only) == 16
    assert copied(np.ones(8, "float32")[::2]) == 16
    assert copied([1, 2, 3]) == 12
    assert copied(ONES) == 0


def test_a_refused_calls_copies_are_its_own(
    model: neuropod.Neuropod, write_package: Callable[..., Path]
) -> None:
    with neuropod.load_neuropod(write_package("other")) as other:
        with pytest.raises(neuropod.SpecMismatchError):
            model.infer({"x": [1, 2], "z": ONES})
        other.infer({"x": ONES})
        assert other.stats()["copied_bytes"] == 0
        assert model.stats()["copied_bytes"] == 8


def test_calls_that_are_refused_while_arrays_become_tensors_count_too(
    model: neuropod.Neuropod,
) -> None:
    with pytest.raises(neuropod.SpecMismatchError, match="float64"):
        model.infer({"x": ONES.astype("float64")})
    with pytest.raises(neuropod.InvalidArgumentError):
        model.infer([ONES])  # no mapping
    with pytest.raises(neuropod.InvalidArgumentError):
        model.infer({"x": ONES}, "y")  # no list of names

    class Unwilling:
        def __len__(self) -> int:
            raise OSError("no data")

        __getitem__ = __len__

        def keys(self) -> list[str]:
            raise OSError("no data")

    with pytest.raises(OSError, match="no data"):
        model.infer(Unwilling())
    stats = model.stats()
    assert stats["calls"] == 4 and stats["calls_in_flight"] == 0
    assert stats["errors"] == {"spec_mismatch": 1, "invalid_argument": 3}


def test_a_model_that_is_not_loaded_yet_counts_refusals(
    write_package: Callable[..., Path],
) -> None:
    with neuropod.load_neuropod(write_package(), load_model_at_construction=False) as model:
        with pytest.raises(neuropod.InvalidArgumentError):
            model.infer({"x": ONES})
        assert model.stats()["errors"] == {"invalid_argument": 1}
        assert model.stats()["load_seconds"] == 0
        model.load_model()
        model.infer({"x": ONES})
        assert model.stats()["calls"] == 2
        assert model.stats()["load_seconds"] > 0


def test_totals_of_eight_threads_are_exact(model: neuropod.Neuropod) -> None:
    def work(thread: int) -> None:
        for call in range(500):
            sign = -1 if (thread + call) % 4 == 0 else 1
            with contextlib.suppress(neuropod.ModelError):
                model.infer({"x": sign * ONES})

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    stats = model.stats()
    assert stats["calls"] == 4000
    assert stats["errors"] == {"model_error": 1000}
    assert stats["latency"]["total"]["count"] == 3000
    assert stats["input_bytes"] == 4000 * 16
    assert stats["output_bytes"] == 3000 * 16


def test_switched_off_it_counts_nothing(write_package: Callable[..., Path]) -> None:
    with neuropod.load_neuropod(write_package("quiet"), collect_metrics=False) as model:
        model.infer({"x": ONES})
        stats = model.stats()
        assert not stats["collected"]
        assert stats["calls"] == 0 and stats["latency"]["total"]["count"] == 0
        assert stats["load_seconds"] > 0
        assert "quiet" not in neuropod.metrics_text()


def test_a_closed_model_has_no_stats(model: neuropod.Neuropod) -> None:
    model.close()
    with pytest.raises(neuropod.InvalidArgumentError, match="is closed"):
        model.stats()


def test_stats_are_plain_values_that_fit_a_screen(model: neuropod.Neuropod) -> None:
    for _ in range(1000):
        model.infer({"x": ONES})
    text = pprint.pformat(model.stats(), sort_dicts=False, width=100)
    assert len(text.splitlines()) < 70
    assert eval(text)["calls"] == 1000


def test_a_workers_time_is_split_from_the_way_there(remote_model: neuropod.Neuropod) -> None:
    for _ in range(5):
        remote_model.infer({"x": ONES})
    stats = remote_model.stats()
    latency = stats["latency"]
    assert latency["framework"]["p50_seconds"] >= 0.93 * 0.02, "the model sleeps for 20 ms"
    assert latency["queue"]["count"] == latency["transport"]["count"] == 5
    assert latency["transport"]["total_seconds"] > 0
    assert sum(latency[part]["total_seconds"] for part in latency if part != "total") == (  # type: ignore[literal-required]
        pytest.approx(latency["total"]["total_seconds"], rel=0.01)
    )
    assert stats["worker_deaths"] == stats["worker_restarts"] == 0


def test_calls_wait_in_the_queue_of_a_worker(remote_model: neuropod.Neuropod) -> None:
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: remote_model.infer({"x": ONES}), range(4)))
    queue = remote_model.stats()["latency"]["queue"]
    assert queue["max_seconds"] >= 0.02, "the last of four waited for others' 20 ms"


def test_copies_for_a_worker_are_counted(remote_model: neuropod.Neuropod) -> None:
    array = remote_model.allocate("x", (4,))
    array[:] = 1
    remote_model.infer({"x": array})
    assert remote_model.stats()["copied_bytes"] == 0
    remote_model.infer({"x": ONES})
    assert remote_model.stats()["copied_bytes"] == ONES.nbytes


def test_a_model_in_this_process_has_no_such_parts(model: neuropod.Neuropod) -> None:
    model.infer({"x": ONES})
    stats = model.stats()
    assert "queue" not in stats["latency"] and "transport" not in stats["latency"]
    assert "worker_deaths" not in stats and "worker_restarts" not in stats
