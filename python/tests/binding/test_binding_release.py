"""Lent arrays that a framework lets go of on a thread without the GIL."""

import json
import threading
import weakref
from pathlib import Path

import numpy as np
import pytest
import torch
from echo_packages import spec_dict

from neuropod import Neuropod, load_neuropod


class KeepsItsInput(torch.nn.Module):
    """Holds the last input until the next call, which runs without the GIL, replaces it."""

    last: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.last = torch.zeros(1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        previous = self.last.clone()
        self.last = x
        return previous


@pytest.fixture
def model(tmp_path: Path) -> Neuropod:
    package = tmp_path / "package"
    (package / "0" / "data").mkdir(parents=True)
    torch.jit.script(KeepsItsInput()).save(package / "0" / "data" / "model.pt")
    config = {
        "name": "keeps_its_input",
        "platform": "torchscript",
        "format_version": 1,
        "stateful": True,
        "input_spec": [spec_dict("x", "float32", [None])],
        "output_spec": [spec_dict("y", "float32", [None])],
    }
    (package / "config.json").write_text(json.dumps(config))
    return load_neuropod(package)


def lend(model: Neuropod, value: float) -> "weakref.ref[np.ndarray]":
    array = np.full(3, value, np.float32)
    model.infer({"x": array})
    return weakref.ref(array)


def test_the_main_thread_drops_it_at_once(model: Neuropod) -> None:
    first = lend(model, 1)
    assert first() is not None
    second = lend(model, 2)
    assert first() is None
    assert second() is not None


def test_any_threads_next_call_drops_it(model: Neuropod) -> None:
    dropped: list[bool] = []

    def run() -> None:
        first = lend(model, 1)
        lend(model, 2)
        lend(model, 3)
        dropped.append(first() is None)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert dropped == [True]


def test_the_array_is_whole_while_the_model_has_it(model: Neuropod) -> None:
    for value in range(100):
        lend(model, value)
        previous = model.infer({"x": np.zeros(3, np.float32)})["y"]
        np.testing.assert_array_equal(previous, np.full(3, value))
