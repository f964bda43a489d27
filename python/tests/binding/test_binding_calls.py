"""Calls: mappings, requested outputs, errors that leave the model usable, threads, references."""

import collections
import gc
import sys
import threading
import time
import types
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from echo_packages import write_addition, write_identity, write_package

import neuropod
from neuropod import (
    InvalidArgumentError,
    ModelError,
    Neuropod,
    NotFoundError,
    SpecMismatchError,
    load_neuropod,
)

ONES = np.ones(3, np.float32)


class LowerCase(collections.UserDict[str, Any]):
    """A mapping that is no dict."""


@pytest.mark.parametrize(
    "make",
    [
        dict,
        collections.OrderedDict,
        LowerCase,
        types.MappingProxyType,
        lambda items: collections.ChainMap({"x": items["x"]}, {"y": items["y"]}),
        lambda items: collections.defaultdict(list, items),
    ],
)
def test_any_mapping_is_taken_and_left_alone(addition: Neuropod, make: Any) -> None:
    items = {"x": ONES, "y": [1.0, 2.0, 3.0]}
    inputs = make(items)
    names = list(inputs)
    np.testing.assert_array_equal(addition.infer(inputs)["out"], [2, 3, 4])
    assert list(inputs) == names
    assert inputs["x"] is ONES
    assert inputs["y"] == [1.0, 2.0, 3.0]


@pytest.mark.parametrize("inputs", [None, 3, "x", [("x", ONES)], ONES, {"x"}], ids=str)
def test_what_is_no_mapping_is_refused(addition: Neuropod, inputs: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="dict"):
        addition.infer(inputs)


@pytest.mark.parametrize("key", [1, b"x", None, ("x",)], ids=str)
def test_names_are_str(addition: Neuropod, key: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=r"name.*str"):
        addition.infer({key: ONES, "y": ONES})


def test_unknown_names_are_refused_whatever_their_values(addition: Neuropod) -> None:
    for value in (ONES, [1], object(), np.zeros(1, [("a", "<i4")])):
        with pytest.raises(
            SpecMismatchError, match=r"'xx'.*|.*not found in the input spec"
        ) as caught:
            addition.infer({"x": ONES, "y": ONES, "xx": value})
        assert "xx" in str(caught.value)


def test_missing_input_is_refused(addition: Neuropod) -> None:
    with pytest.raises(SpecMismatchError, match="y"):
        addition.infer({"x": ONES})


def test_rank_and_symbol_are_checked(addition: Neuropod) -> None:
    with pytest.raises(
        SpecMismatchError, match="in the input spec is expected to have 1 dimensions, but had 2"
    ):
        addition.infer({"x": ONES.reshape(1, 3), "y": ONES})
    with pytest.raises(SpecMismatchError, match="batch"):
        addition.infer({"x": ONES, "y": np.ones(4, np.float32)})


@pytest.fixture
def two_outputs(tmp_path: Path) -> Neuropod:
    package = write_package(
        tmp_path / "two",
        inputs=[("x", "float32", [None])],
        outputs=[("first", "float32", [None]), ("second", "float32", [None])],
        model={
            "outputs": {
                "first": {"op": "scale", "input": "x", "by": 2},
                "second": {"op": "scale", "input": "x", "by": 3},
            }
        },
    )
    return load_neuropod(package)


def test_requested_outputs(two_outputs: Neuropod) -> None:
    inputs = {"x": ONES}
    assert list(two_outputs.infer(inputs)) == ["first", "second"]
    assert list(two_outputs.infer(inputs, ["second"])) == ["second"]
    assert list(two_outputs.infer(inputs, ("second", "first"))) == ["second", "first"]
    assert list(two_outputs.infer(inputs, requested_outputs=[])) == ["first", "second"]
    assert list(two_outputs.infer(inputs, None)) == ["first", "second"]


def test_unknown_requested_output_is_named(two_outputs: Neuropod) -> None:
    with pytest.raises(NotFoundError, match="third") as caught:
        two_outputs.infer({"x": ONES}, ["first", "third"])
    assert isinstance(caught.value, LookupError)
    for wrong in ("first", b"first", [1]):
        with pytest.raises(InvalidArgumentError, match="requested_outputs"):
            two_outputs.infer({"x": ONES}, wrong)  # type: ignore[arg-type]


def test_model_error_leaves_the_model_usable(tmp_path: Path) -> None:
    package = write_identity(
        tmp_path / "failing",
        "float32",
        [None],
        fail_if_negative={"input": "x", "message": "negative number 🦊"},
    )
    with load_neuropod(package) as model:
        for _ in range(3):
            with pytest.raises(ModelError, match="negative number 🦊"):
                model.infer({"x": -ONES})
            np.testing.assert_array_equal(model.infer({"x": ONES})["y"], ONES)


# References.


def test_inputs_are_released_after_every_kind_of_call(tmp_path: Path) -> None:
    package = write_identity(
        tmp_path / "failing", "float32", [None], fail_if_negative={"input": "x", "message": "no"}
    )
    with load_neuropod(package) as model:
        for value, error in ((1, None), (-1, ModelError)):
            array = np.full(3, value, np.float32)
            before = sys.getrefcount(array)
            for _ in range(10):
                if error is None:
                    model.infer({"x": array})
                else:
                    with pytest.raises(error):
                        model.infer({"x": array})
            assert sys.getrefcount(array) == before
        wrong = np.zeros((2, 2), np.float32)
        before = sys.getrefcount(wrong)
        with pytest.raises(SpecMismatchError):
            model.infer({"x": wrong})
        assert sys.getrefcount(wrong) == before


def test_calls_leave_no_memory_behind(addition: Neuropod) -> None:
    def run() -> None:
        for _ in range(200):
            addition.infer({"x": ONES, "y": [1.0, 2.0, 3.0]})

    run()
    gc.collect()
    before = addition.allocator_stats
    blocks = sys.getallocatedblocks()
    for _ in range(10):
        run()
    gc.collect()
    after = addition.allocator_stats
    assert after["live_bytes"] == before["live_bytes"]
    assert after["system_allocations"] == before["system_allocations"]
    # A leak of one object a call would be 2000.
    assert sys.getallocatedblocks() - blocks < 200


def test_closed_model_says_so(tmp_path: Path) -> None:
    model = load_neuropod(write_addition(tmp_path / "addition"))
    model.close()
    model.close()
    for use in (
        lambda: model.infer({"x": ONES, "y": ONES}),
        lambda: model.inputs,
        model.load_model,
        model.reset,
    ):
        with pytest.raises(InvalidArgumentError, match="closed"):
            use()
    assert model.name == "addition"
    assert "closed" in repr(model)


def test_closing_frees_the_model(tmp_path: Path) -> None:
    """Seen by what the model lets go of: memory that it holds between calls."""
    model = load_neuropod(write_addition(tmp_path / "addition"))
    native = model.model
    before = sys.getrefcount(native)
    model.close()
    # The executor's own reference and that of its bound method.
    assert sys.getrefcount(native) == before - 2


def test_stateful_model_starts_afresh(tmp_path: Path) -> None:
    package = write_package(
        tmp_path / "sum",
        inputs=[("x", "float32", [None])],
        outputs=[("y", "float32", [None])],
        model={"outputs": {"y": {"op": "running_sum", "input": "x"}}},
        stateful=True,
    )
    with load_neuropod(package) as model:
        sums = [model.infer({"x": ONES})["y"][0] for _ in range(3)]
        model.reset()
        assert [*sums, model.infer({"x": ONES})["y"][0]] == [1, 2, 3, 1]


def test_only_stateful_models_have_a_state_to_forget(addition: Neuropod) -> None:
    with pytest.raises(InvalidArgumentError, match="stateful"):
        addition.reset()


# Threads.


def test_eight_threads_on_one_model(addition: Neuropod) -> None:
    start = threading.Barrier(8)

    def run(thread: int) -> bool:
        start.wait()
        x = np.full(64, thread, np.float32)
        return all(
            (addition.infer({"x": x, "y": np.full(64, i, np.float32)})["out"] == thread + i).all()
            for i in range(200)
        )

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(run, range(8)))


def test_eight_models_in_eight_threads(tmp_path: Path) -> None:
    start = threading.Barrier(8)

    def run(thread: int) -> float:
        start.wait()
        with load_neuropod(write_addition(tmp_path / str(thread))) as model:
            x = np.full(8, thread, np.float32)
            return float(sum(model.infer({"x": x, "y": x})["out"][0] for _ in range(50)))

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(run, range(8))) == [100.0 * thread for thread in range(8)]


def test_gil_is_released_while_a_model_runs(tmp_path: Path) -> None:
    """The other thread gets ahead while the model sleeps, which it couldn't under the GIL."""
    package = write_identity(tmp_path / "sleeping", "float32", [None], sleep_ms=300)
    entered = threading.Event()
    finished = threading.Event()
    progress = 0

    with load_neuropod(package) as model:

        def call() -> None:
            entered.set()
            model.infer({"x": ONES})
            finished.set()

        thread = threading.Thread(target=call)
        thread.start()
        entered.wait()
        while not finished.is_set():
            time.sleep(0.01)
            progress += 1
        thread.join()
    assert progress > 1


def test_package_exports_what_it_promises() -> None:
    for name in neuropod.__all__:
        assert getattr(neuropod, name) is not None


def test_what_a_mapping_raises_comes_out_as_it_is(addition: Neuropod) -> None:
    class Unwilling:
        def __getitem__(self, name: str) -> None:
            raise OSError("no item")

        def keys(self) -> list[str]:
            raise OSError("no keys")

    class HalfWilling(Unwilling):
        def keys(self) -> list[str]:
            return ["x"]

    with pytest.raises(OSError, match="no keys"):
        addition.infer(Unwilling())
    with pytest.raises(OSError, match="no item"):
        addition.infer(HalfWilling())
