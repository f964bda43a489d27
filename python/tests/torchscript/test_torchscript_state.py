"""Models that keep state between calls, and inputs that a model changes."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torchscript_packages import LoadModule, WritePackage

from neuropod import load_neuropod

X = [("x", "float32", ("n",))]
Y = [("y", "float32", (None,))]


class Sum(nn.Module):
    total: Tensor

    def __init__(self, size: int = 1, reassign: bool = False) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(size))
        self.reassign = reassign

    def forward(self, x: Tensor) -> Tensor:
        if self.reassign:
            self.total = self.total + x
        else:
            self.total += x
        return self.total[:1]


class History(nn.Module):
    """State in attributes that are no tensors, some of them in a submodule."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[float] = [0.0]
        self.count = 0

    def forward(self, x: Tensor) -> Tensor:
        self.count += 1
        self.seen.append(float(x[0]))
        return torch.tensor([float(self.count), sum(self.seen)])


class Outer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = History()

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x)


class Learns(nn.Module):
    """Changes a parameter, which only loading again undoes."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1))

    def forward(self, x: Tensor) -> Tensor:
        self.weight.add_(x)
        return self.weight * 1


class Lstm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.lstm = nn.LSTM(2, 3)
        self.register_buffer("hidden", torch.zeros(1, 3))
        self.register_buffer("cell", torch.zeros(1, 3))

    def forward(self, x: Tensor) -> Tensor:
        y, (hidden, cell) = self.lstm(x.view(1, 2), (self.hidden, self.cell))
        self.hidden = hidden
        self.cell = cell
        return y.view(-1)


class Unsqueezes(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        x.unsqueeze_(0)
        return x.sum(1)


class AddsInPlace(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.add_(1)


class Appends(nn.Module):
    def forward(self, x: list[str]) -> list[str]:
        x.append("more")
        return x


def run(model: object, x: float) -> list[float]:
    return model.infer({"x": np.float32([x])})["y"].tolist()  # type: ignore[attr-defined]


def check_reset(model: object, calls: int = 3) -> list[list[float]]:
    first = [run(model, i + 1) for i in range(calls)]
    model.reset()  # type: ignore[attr-defined]
    assert [run(model, i + 1) for i in range(calls)] == first
    model.reset()  # type: ignore[attr-defined]
    assert run(model, 1) == first[0]
    return first


def test_reset_puts_buffers_back(load_module: LoadModule) -> None:
    for reassign in (False, True):
        model = load_module(Sum(reassign=reassign), X, Y, stateful=True)
        assert check_reset(model) == [[1], [3], [6]]


def test_reset_puts_attributes_of_submodules_back(load_module: LoadModule) -> None:
    model = load_module(Outer(), X, Y, stateful=True)
    assert check_reset(model) == [[1, 1], [2, 3], [3, 6]]


def test_reset_of_a_state_too_large_to_keep_twice(load_module: LoadModule) -> None:
    model = load_module(Sum(size=20_000_000), X, Y, stateful=True)
    assert check_reset(model) == [[1], [3], [6]]


def test_reset_puts_parameters_back(load_module: LoadModule) -> None:
    model = load_module(Learns(), X, Y, stateful=True)
    assert check_reset(model) == [[2], [4], [7]]


def test_reset_of_a_recurrent_network(load_module: LoadModule) -> None:
    model = load_module(Lstm(), [("x", "float32", (2,))], Y, stateful=True)
    x = np.float32([0.5, -1])
    first = [model.infer({"x": x})["y"] for _ in range(3)]
    assert not np.array_equal(first[0], first[1])
    model.reset()
    np.testing.assert_array_equal([model.infer({"x": x})["y"] for _ in range(3)], first)


def test_calls_of_a_stateful_model_run_one_after_the_other(load_module: LoadModule) -> None:
    model = load_module(Outer(), X, Y, stateful=True)
    with ThreadPoolExecutor(8) as pool:
        counts = list(pool.map(lambda _: run(model, 1)[0], range(200)))
    assert sorted(counts) == list(range(1, 201))


def test_threads_share_a_model(load_module: LoadModule) -> None:
    class Double(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x * 2

    model = load_module(Double(), X, Y)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda i: run(model, i)[0], range(500)))
    assert found == [2 * i for i in range(500)]


def test_a_model_works_in_place_on_its_callers_array(load_module_here: LoadModule) -> None:
    model = load_module_here(AddsInPlace(), X, Y)
    x = np.float32([1, 2])
    y = model.infer({"x": x})["y"]
    assert x.tolist() == [2, 3]
    assert y.ctypes.data == x.ctypes.data


def test_a_shape_changed_in_place_does_not_reach_the_caller(load_module: LoadModule) -> None:
    model = load_module(Unsqueezes(), X, Y)
    tensor = model.infer({"x": np.float32([1, 2])})["y"]
    assert tensor.tolist() == [3]
    native = model.model
    for _ in range(3):
        assert native.infer({"x": np.float32([1, 2, 3])}, None)["y"].tolist() == [6]


def test_a_list_changed_in_place_does_not_reach_the_caller(load_module: LoadModule) -> None:
    model = load_module(Appends(), [("x", "string", (None,))], [("y", "string", (None,))])
    for _ in range(2):
        assert model.infer({"x": ["one"]})["y"].tolist() == ["one", "more"]


def test_each_model_runs_with_its_own_number_of_threads(write_package: WritePackage) -> None:
    package = write_package(AddsInPlace(), X, Y)
    before = torch.get_num_threads()
    try:
        with load_neuropod(package, threads=1) as one, load_neuropod(package, threads=3) as three:
            found = []
            for model in (one, three, one):
                run(model, 0)
                found.append(torch.get_num_threads())
            assert found == [1, 3, 1]
    finally:
        torch.set_num_threads(before)


class WorksInParallel(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.ones(1 << 20).exp().sum().reshape(1)


def test_a_worker_runs_with_the_number_of_threads_it_is_given(write_package: WritePackage) -> None:
    package = write_package(WorksInParallel(), X, Y)

    def threads(**options: Any) -> int:
        with load_neuropod(package, use_ope=True, **options) as model:
            run(model, 0)
            return len(list(Path(f"/proc/{model.workers()[0]['pid']}/task").iterdir()))

    here = torch.get_num_threads()
    # torch has more than one pool of so many threads.
    one, two, three = (threads(threads=count) for count in (1, 2, 3))
    assert one < two < three
    assert threads(threads=3, ope_options={"threads": 2}) == two, "ope_options has the last word"
    assert torch.get_num_threads() == here
