"""neuropod.set_metrics_callback()."""

import gc
import subprocess
import sys
import textwrap
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import neuropod
from neuropod.metrics import CallRecord

ONES = np.ones(4, "float32")


def test_is_told_of_each_call(model: neuropod.Neuropod) -> None:
    records: list[CallRecord] = []
    neuropod.set_metrics_callback(records.append)
    model.infer({"x": ONES})
    with pytest.raises(neuropod.ModelError):
        model.infer({"x": -ONES})
    neuropod.set_metrics_callback(None)
    model.infer({"x": ONES})
    good, bad = records
    assert good["model"] == "identity" and good["platform"] == "echo" and good["error"] is None
    assert good["input_bytes"] == good["output_bytes"] == 16
    assert good["total_seconds"] >= good["framework_seconds"] > 0
    assert bad["error"] == "model_error" and bad["output_bytes"] == 0
    assert f'load_id="{good["load_id"]}"' in neuropod.metrics_text()


def test_a_call_in_a_worker_has_its_parts(remote_model: neuropod.Neuropod) -> None:
    records: list[CallRecord] = []
    neuropod.set_metrics_callback(records.append)
    remote_model.infer({"x": ONES})
    with pytest.raises(neuropod.ModelError):
        remote_model.infer({"x": -ONES})
    good, bad = records
    assert good["framework_seconds"] >= 0.019
    assert good["transport_seconds"] > 0 and good["queue_seconds"] >= 0
    parts = sum(good[f"{p}_seconds"] for p in ("checks", "sealing", "framework", "outputs"))  # type: ignore[literal-required]
    parts += good["queue_seconds"] + good["transport_seconds"]
    assert good["total_seconds"] == pytest.approx(parts, rel=0.01)
    assert bad["error"] == "model_error"
    assert bad["queue_seconds"] == bad["transport_seconds"] == 0


def test_what_it_raises_disturbs_no_call(
    model: neuropod.Neuropod, capfd: pytest.CaptureFixture[str]
) -> None:
    def broken(record: CallRecord) -> None:
        raise ValueError("the queue is full")

    neuropod.set_metrics_callback(broken)
    for _ in range(3):
        assert model.infer({"x": ONES})["y"].sum() == 4
    with pytest.raises(neuropod.ModelError):
        model.infer({"x": -ONES})
    captured = capfd.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert "ValueError: the queue is full" in captured.err


def test_what_it_raises_is_told_though_it_is_no_utf8(
    model: neuropod.Neuropod, capfd: pytest.CaptureFixture[str]
) -> None:
    def broken(record: CallRecord) -> None:
        raise ValueError("a path with \udcff")

    neuropod.set_metrics_callback(broken)
    model.infer({"x": ONES})
    assert r"ValueError: a path with \udcff" in capfd.readouterr().err


def test_it_may_call_models_itself(model: neuropod.Neuropod) -> None:
    told = []

    def callback(record: CallRecord) -> None:
        told.append(record)
        model.infer({"x": ONES})

    neuropod.set_metrics_callback(callback)
    model.infer({"x": ONES})
    assert len(told) == 1
    assert model.stats()["calls"] == 2


def test_is_told_by_eight_threads(model: neuropod.Neuropod) -> None:
    records: list[CallRecord] = []
    neuropod.set_metrics_callback(records.append)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: model.infer({"x": ONES}), range(400)))
    assert len(records) == 400


def test_is_freed_when_it_is_replaced(model: neuropod.Neuropod) -> None:
    class Callback:
        def __call__(self, record: CallRecord) -> None:
            pass

    callback = Callback()
    alive = weakref.ref(callback)
    neuropod.set_metrics_callback(callback)
    model.infer({"x": ONES})
    del callback
    gc.collect()
    assert alive() is not None
    neuropod.set_metrics_callback(None)
    gc.collect()
    assert alive() is None


@pytest.mark.parametrize("kind", ["set_metrics_callback(called)", "set_log_sink(called)"])
def test_the_interpreter_ends_while_threads_call_back(
    write_package: Callable[..., Path], kind: str
) -> None:
    script = f"""
        import threading, time
        import numpy as np
        import neuropod

        def called(*arguments):
            global calls
            calls += 1
            time.sleep(0.0001)

        calls = 0
        neuropod.set_log_level("TRACE")
        neuropod.{kind}
        ones = np.ones(4, "float32")

        def work():
            while True:
                model = neuropod.load_neuropod({str(write_package(device=False))!r})
                for _ in range(20):
                    model.infer({{"x": ones}})

        for _ in range(8):
            threading.Thread(target=work, daemon=True).start()
        while calls < 20:
            time.sleep(0.001)
    """
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(script)],
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr[-2000:]
        assert done.stdout == ""


def test_a_forked_child_ends_though_a_callback_was_running(
    write_package: Callable[..., Path],
) -> None:
    script = f"""
        import os, threading
        import numpy as np
        import neuropod

        inside, leave = threading.Event(), threading.Event()

        def callback(record):
            inside.set()
            leave.wait()

        model = neuropod.load_neuropod({str(write_package())!r})
        ones = np.ones(4, "float32")
        thread = threading.Thread(target=lambda: model.infer({{"x": ones}}))
        neuropod.set_metrics_callback(callback)
        thread.start()
        inside.wait()
        child = os.fork()
        if child == 0:
            neuropod.set_metrics_callback(None)
            model.infer({{"x": ones}})
            assert model.stats()["calls"] == 2, model.stats()["calls"]
            assert "neuropod_calls_total" in neuropod.metrics_text()
        else:
            _, status = os.waitpid(child, 0)
            leave.set()
            thread.join()
            assert status == 0, status
    """
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(script)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr[-2000:]
