"""Results that a caller holds stay what they were, and inputs that a model keeps, too."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torchscript_packages import LoadModule

N = 4096  # 16 KiB: more than a worker's answer carries in itself
CALLS = 100
X = [("x", "float32", (None,))]
PAIR = [("a", "float32", (None,)), ("b", "float32", (None,))]


class OwnBuffer(nn.Module):
    total: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(N))

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        self.total += x
        return {"a": self.total, "b": self.total[:2048]}


class NewBuffer(nn.Module):
    """Its state lies in memory that was allocated while a call ran."""

    total: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.total = torch.zeros(1)

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        if self.total.numel() == 1:
            self.total = x + 0
        else:
            self.total.add_(x)
        return {"a": self.total, "b": self.total[2048:]}


class ChangingParameter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(N))

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        self.weight.add_(x)
        return {"a": self.weight, "b": self.weight.detach()}


class SlicesOfOneResult(nn.Module):
    def forward(self, x: Tensor) -> dict[str, Tensor]:
        both = torch.cat([x, -x])
        return {"a": both[:4096], "b": both[4096:]}


class SmallSlice(nn.Module):
    """A little of a large block, and one that isn't contiguous."""

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        large = x.repeat(8)
        return {"a": large[8:16], "b": large[::2]}


class Input(nn.Module):
    def forward(self, x: Tensor) -> dict[str, Tensor]:
        return {"a": x, "b": x[1:]}


class InPlace(nn.Module):
    def forward(self, x: Tensor) -> dict[str, Tensor]:
        x.mul_(2)
        return {"a": x, "b": x.view(2, -1)[1]}


class TheSameTwice(nn.Module):
    def forward(self, x: Tensor) -> dict[str, Tensor]:
        y = x + 1
        return {"a": y, "b": y}


class KeepsItsResult(nn.Module):
    """Writes to what it returned one call ago."""

    last: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.last = torch.zeros(1)

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        self.last.fill_(-1)
        y = x + 1
        self.last = y[:]
        return {"a": y, "b": y[1:]}


class KeepsItsInput(nn.Module):
    last: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.last = torch.zeros(N)

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        before = self.last.clone()
        self.last = x
        return {"a": before, "b": x}


@pytest.mark.parametrize(
    "module",
    [
        OwnBuffer(),
        NewBuffer(),
        ChangingParameter(),
        SlicesOfOneResult(),
        SmallSlice(),
        TheSameTwice(),
    ],
    ids=lambda module: type(module).__name__,
)
def test_results_stay_what_they_were_over_later_calls(
    load_module: LoadModule, module: nn.Module
) -> None:
    model = load_module(module, X, PAIR)
    held: list[tuple[dict[str, Any], dict[str, bytes]]] = []
    for call in range(CALLS):
        found = model.infer({"x": np.full(N, call + 1, np.float32)})
        held.append((found, {name: value.tobytes() for name, value in found.items()}))
    assert len({content["a"] for _, content in held}) == CALLS
    for found, content in held:
        assert {name: value.tobytes() for name, value in found.items()} == content


@pytest.mark.parametrize("module", [Input(), InPlace()], ids=["Input", "InPlace"])
@pytest.mark.parametrize("allocated", [False, True])
def test_results_that_are_the_input_stay_as_long_as_the_input_does(
    load_module: LoadModule, module: nn.Module, allocated: bool
) -> None:
    model = load_module(module, X, PAIR)
    factor = 2 if isinstance(module, InPlace) else 1
    held = []
    for call in range(CALLS):
        x = model.allocate("x", (N,)) if allocated else np.empty(N, np.float32)
        x[:] = call
        held.append(model.infer({"x": x}))
        if allocated:
            assert held[-1]["a"].ctypes.data == x.ctypes.data, "the caller's own memory came back"
        del x
    for call, found in enumerate(held):
        assert (found["a"] == call * factor).all() and len(found["a"]) == N
        assert (found["b"] == call * factor).all()
    if allocated:
        assert model.stats()["copied_bytes"] == 0


def test_a_result_that_the_model_keeps_and_writes_to_later_stays_what_it_was(
    load_module: LoadModule,
) -> None:
    model = load_module(KeepsItsResult(), X, PAIR)
    held = [model.infer({"x": np.full(N, call, np.float32)}) for call in range(CALLS)]
    for call, found in enumerate(held):
        assert (found["a"] == call + 1).all() and (found["b"] == call + 1).all()


@pytest.mark.parametrize("allocated", [False, True])
def test_what_a_model_kept_of_its_input_is_not_given_to_others(
    load_module: LoadModule, allocated: bool
) -> None:
    """The memory of an input that a model keeps isn't handed out again while it does."""
    model = load_module(KeepsItsInput(), X, PAIR)
    for call in range(CALLS):
        x = model.allocate("x", (N,)) if allocated else np.empty(N, np.float32)
        x[:] = call + 1
        before = model.infer({"x": x}, ["a"])["a"]
        assert (before == call).all()
        del x, before
        for value in (-1, -2):
            model.allocate("x", (N,))[:] = value


def test_a_caller_that_writes_to_an_array_it_allocated_changes_what_the_model_kept(
    load_module: LoadModule,
) -> None:
    """It is one memory in both modes; an array that a worker was given a copy of is not."""
    model = load_module(KeepsItsInput(), X, PAIR)
    x = model.allocate("x", (N,))
    x[:] = 1
    model.infer({"x": x})
    x[:] = 5
    assert (model.infer({"x": np.ones(N, np.float32)})["a"] == 5).all()
