"""`load_neuropod(path, swappable=True)`: replacing the package of a model that serves."""

import gc
import os
import threading
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from swap_packages import INPUTS, OUTPUTS, write_echo, write_identity, write_package

from neuropod import (
    BackendNotFoundError,
    CorruptPackageError,
    InvalidArgumentError,
    InvalidPackageError,
    LoadFailedError,
    Neuropod,
    NotFoundError,
    load_neuropod,
)

X = np.arange(4, dtype="float32")


def call(model, x=X):
    """The mark of the model that answered; fails unless the whole answer is one model's."""
    outputs = model.infer({"x": x})
    assert np.array_equal(outputs["y"], 2 * x)
    assert outputs["first_mark"] == outputs["last_mark"]
    return int(outputs["first_mark"][0])


def test_serves_the_other_package_after_a_swap(swappable, torchscript, echo):
    assert (call(swappable), swappable.generation) == (1, 0)
    swappable.swap(torchscript)
    assert (call(swappable), swappable.generation) == (2, 1)
    assert (swappable.name, swappable.platform) == ("torchscript", "torchscript")
    swappable.swap(str(echo))
    assert (call(swappable), swappable.generation) == (1, 2)


def test_every_other_method_behaves_as_before(swappable, other_echo):
    with load_neuropod(other_echo, visible_device="cpu") as plain:
        swappable.swap(other_echo)
        assert swappable.inputs == plain.inputs
        assert swappable.outputs == plain.outputs
        assert swappable.config["name"] == plain.config["name"]
        assert repr(swappable) == repr(plain)
        assert swappable.infer({"x": X}, ["y"]).keys() == {"y"}
        assert swappable.allocator_stats.keys() == plain.allocator_stats.keys()


def test_outputs_outlive_the_model_that_made_them(swappable, torchscript, echo):
    swappable.swap(torchscript)
    outputs = swappable.infer({"x": X})
    swappable.swap(echo)
    gc.collect()
    assert np.array_equal(outputs["y"], 2 * X)


def test_a_call_under_way_ends_on_the_model_it_began_with(tmp_path, other_echo):
    slow = write_echo(tmp_path / "slow", 5, sleep_ms=200)
    with (
        load_neuropod(slow, swappable=True, visible_device="cpu") as model,
        ThreadPoolExecutor(1) as pool,
    ):
        under_way = pool.submit(call, model)
        time.sleep(0.05)
        model.swap(other_echo)
        assert call(model) == 3
        assert not under_way.done()
        assert under_way.result() == 5


def test_an_output_of_the_replaced_model_is_an_input_of_the_next(swappable, torchscript, echo):
    swappable.swap(torchscript)
    y = swappable.infer({"x": X})["y"]
    swappable.swap(echo)
    assert call(swappable, y) == 1


@pytest.mark.parametrize(
    ("break_package", "error", "text"),
    [
        (lambda p: (p / "config.json").write_text("{"), InvalidPackageError, "no valid JSON"),
        (lambda p: (p / "0/data/echo.json").write_text("{"), LoadFailedError, "can't be loaded"),
        (lambda p: p.rename(p.parent / "elsewhere"), NotFoundError, "other_echo"),
        (
            lambda p: (p / "config.json").write_text(
                (p / "config.json").read_text().replace('"echo"', '"nobody"')
            ),
            BackendNotFoundError,
            "nobody",
        ),
    ],
)
def test_a_package_that_cannot_be_loaded_leaves_the_old_one_serving(
    swappable, other_echo, break_package, error, text
):
    break_package(other_echo)
    with pytest.raises(error, match=text) as caught:
        swappable.swap(other_echo)
    assert "model 'echo' isn't swapped and keeps serving" in str(caught.value)
    assert str(other_echo) in str(caught.value)
    assert (call(swappable), swappable.generation) == (1, 0)


def test_a_truncated_package_leaves_the_old_one_serving(swappable, other_echo, tmp_path):
    package = tmp_path / "package.neuropod"
    with zipfile.ZipFile(package, "w") as archive:
        for file in ("config.json", "0/data/echo.json"):
            archive.write(other_echo / file, file)
    package.write_bytes(package.read_bytes()[:-40])
    with pytest.raises(CorruptPackageError, match=r"isn't swapped and keeps serving: .*package"):
        swappable.swap(package)
    assert call(swappable) == 1


def test_infer_is_the_code_of_a_plain_model(swappable):
    assert type(swappable).infer is Neuropod.infer


def test_a_package_of_another_api_is_refused_with_the_differences(swappable, tmp_path):
    other = write_identity(tmp_path / "identity", "float64", ["n"])
    with pytest.raises(InvalidArgumentError, match="doesn't fulfil the problem API") as caught:
        swappable.swap(other)
    assert "input 'x' is float64 instead of float32" in str(caught.value)
    assert "output 'first_mark' is missing: int64 (1,)" in str(caught.value)
    assert call(swappable) == 1


def test_a_wider_package_may_serve_and_the_first_may_come_back(swappable, tmp_path, echo):
    outputs = {
        name: {"op": "constant", "dtype": "int64", "shape": [1], "values": [7]}
        for name in ("first_mark", "last_mark", "more")
    }
    wider = write_package(
        tmp_path / "wider",
        inputs=[*INPUTS],
        outputs=[*OUTPUTS, ("more", "int64", [None])],
        model={"outputs": {"y": {"op": "scale", "input": "x", "by": 2}, **outputs}},
    )
    swappable.swap(wider)
    assert call(swappable) == 7
    assert [spec["name"] for spec in swappable.outputs] == ["y", "first_mark", "last_mark"]
    assert len(swappable.config["outputs"]) == 4
    swappable.swap(echo)
    assert call(swappable) == 1


def test_keeps_the_options_it_was_loaded_with(tmp_path):
    folders = [write_echo(tmp_path / name, 1) for name in "ab"]
    with load_neuropod(
        folders[0], swappable=True, disable_shape_and_type_checking=True, visible_device="cpu"
    ) as model:
        model.swap(folders[1])
        assert model.infer({"x": X.astype("float64")})["y"].dtype == np.float64


def test_a_model_that_was_not_loaded_yet_swaps_to_a_loaded_one(echo, other_echo):
    with load_neuropod(echo, swappable=True, load_model_at_construction=False) as model:
        with pytest.raises(InvalidArgumentError, match="isn't loaded"):
            model.infer({"x": X})
        model.load_model()
        assert call(model) == 1
        model.swap(other_echo)
        assert call(model) == 3
        with pytest.raises(InvalidArgumentError, match="loaded already"):
            model.load_model()


def test_a_stateful_model_starts_afresh_and_resets(tmp_path):
    def write(name):
        return write_package(
            tmp_path / name,
            inputs=INPUTS,
            outputs=OUTPUTS[:1],
            model={"outputs": {"y": {"op": "running_sum", "input": "x"}}},
            stateful=True,
        )

    def total():
        return model.infer({"x": np.ones(1, "float32")})["y"][0]

    with load_neuropod(write("a"), swappable=True, visible_device="cpu") as model:
        assert [total(), total()] == [1, 2]
        model.swap(write("b"))
        assert [total(), total()] == [1, 2]
        model.reset()
        assert total() == 1


def test_a_closed_model_cannot_be_swapped(swappable, other_echo):
    swappable.close()
    with pytest.raises(InvalidArgumentError, match="is closed"):
        swappable.swap(other_echo)
    with pytest.raises(InvalidArgumentError, match="is closed"):
        swappable.infer({"x": X})
    swappable.close()


def test_closing_while_a_swap_loads_wins(swappable, other_echo, monkeypatch):
    load = swappable._load_fulfilling

    def load_and_close(path):
        model = load(path)
        swappable.close()
        return model

    monkeypatch.setattr(swappable, "_load_fulfilling", load_and_close)
    with pytest.raises(InvalidArgumentError, match="is closed"):
        swappable.swap(other_echo)
    with pytest.raises(InvalidArgumentError, match="is closed"):
        swappable.infer({"x": X})


def test_a_plain_model_says_what_makes_it_swappable(echo, other_echo):
    with load_neuropod(echo) as model:
        with pytest.raises(InvalidArgumentError, match="swappable=True"):
            model.swap(other_echo)
        assert model.generation == 0


def test_a_misspelt_option_is_refused_with_the_nearest(echo):
    with pytest.raises(TypeError, match="swappable"):
        load_neuropod(echo, swapable=True)


def test_an_option_that_is_no_switch_is_refused(echo):
    with pytest.raises(InvalidArgumentError, match="True or False"):
        load_neuropod(echo, swappable="yes")


def test_two_swaps_at_once_run_one_after_the_other(swappable, echo, other_echo):
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(swappable.swap, [echo, other_echo] * 10))
    assert swappable.generation == 20
    assert call(swappable) in (1, 3)


def test_swaps_and_calls_share_a_pool(swappable, echo, other_echo):
    with ThreadPoolExecutor(4) as pool:
        results = [
            pool.submit(swappable.swap, (echo, other_echo)[i % 2])
            if i % 10 == 0
            else pool.submit(call, swappable)
            for i in range(200)
        ]
        assert {result.result() for result in results} <= {None, 1, 3}
    assert swappable.generation == 20


def resident_bytes():
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE")


class Callers:
    """Eight threads that call a model until the block ends."""

    def __init__(self, model):
        self.model = model
        self.calls = [0] * 8
        self.marks = [set() for _ in self.calls]
        self.failures = []
        self._stop = False
        self._threads = [threading.Thread(target=self._run, args=(i,)) for i in range(8)]

    def _run(self, i):
        x = np.arange(100 * (i + 1), dtype="float32")
        while not self._stop:
            try:
                self.marks[i].add(call(self.model, x))
            except BaseException as error:
                self.failures.append(error)
            self.calls[i] += 1

    def wait_for_all(self):
        """Until each thread has made a whole call that started after this one did."""
        before = list(self.calls)
        while any(now < then + 2 for now, then in zip(self.calls, before, strict=True)):
            time.sleep(0.001)

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._stop = True
        for thread in self._threads:
            thread.join()


def test_fifty_swaps_between_frameworks_under_eight_threads(swappable, echo, torchscript):
    with Callers(swappable) as callers:
        for i in range(50):
            swappable.swap((torchscript, echo)[i % 2])
            callers.wait_for_all()
            if i == 19:
                resident_after_warm_up = resident_bytes()
        resident = resident_bytes()
    assert callers.failures == []
    assert set.union(*callers.marks) == {1, 2}
    assert swappable.generation == 50
    assert resident - resident_after_warm_up < 16 << 20
    gc.collect()
    assert swappable.allocator_stats["live_bytes"] == 0
