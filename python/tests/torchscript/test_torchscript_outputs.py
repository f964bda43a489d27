"""What forward() may return, and how it leaves the model."""

from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torchscript_packages import Load, LoadModule, WritePackage

from neuropod import ModelError, SpecMismatchError

X = [("x", "float32", ("n",))]
PAIR = [("a", "float32", (None,)), ("b", "float32", (None,))]


class Dict(nn.Module):
    def forward(self, x: Tensor) -> dict[str, Tensor]:
        return {"a": x, "b": -x}


class TupleOfDicts(nn.Module):
    def forward(self, x: Tensor) -> tuple[dict[str, Tensor], dict[str, list[str]]]:
        return {"a": x + 1}, {"text": ["one", "two"]}


class Duplicate(nn.Module):
    def forward(self, x: Tensor) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        return {"a": x}, {"a": x, "b": x}


class Fields(NamedTuple):
    b: Tensor
    a: Tensor


class ReturnsFields(nn.Module):
    def forward(self, x: Tensor) -> Fields:
        return Fields(-x, x)


class PlainTuple(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return x, -x


class Maybe(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor | None]:
        if bool(x[0] > 0):
            return x, x
        return x, None


class ReturnsInt(nn.Module):
    def forward(self, x: Tensor) -> int:
        return x.numel()


class ReturnsFloat(nn.Module):
    def forward(self, x: Tensor) -> float:
        return 0.25


class ReturnsBool(nn.Module):
    def forward(self, x: Tensor) -> bool:
        return True


class ReturnsString(nn.Module):
    def forward(self, x: Tensor) -> str:
        return "text"


class ReturnsInts(nn.Module):
    def forward(self, x: Tensor) -> list[int]:
        return [1, 2]


class ReturnsTensors(nn.Module):
    def forward(self, x: Tensor) -> list[Tensor]:
        return [x, x]


class Views(nn.Module):
    def forward(self, x: Tensor) -> dict[str, Tensor]:
        return {
            "transposed": x.t(),
            "strided": x[:, ::2],
            "expanded": x[0, 0].expand(2, 2),
            "row": x[1],
        }


class Conjugate(nn.Module):
    def forward(self, x: Tensor) -> dict[str, Tensor]:
        return {"conjugate": torch.conj(x), "negative": torch.conj(x).imag}


class Quantized(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.quantize_per_tensor(x, 0.5, 0, torch.qint8)


class Sparse(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.to_sparse()


class Float8(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.to(torch.float8_e4m3fn)


class Buffer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("value", torch.zeros(2))

    def forward(self, x: Tensor) -> Tensor:
        self.value += x
        return self.value


class Halves(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        y = x + 1
        return y[:2], y[2:]


def infer(model: Any, x: Any) -> dict[str, Any]:
    return {name: value.tolist() for name, value in model.infer({"x": np.float32(x)}).items()}


@pytest.mark.parametrize("module", [Dict(), ReturnsFields(), PlainTuple()])
def test_dict_named_tuple_and_tuple(load_module: LoadModule, module: nn.Module) -> None:
    model = load_module(module, X, PAIR)
    assert infer(model, [1, 2]) == {"a": [1, 2], "b": [-1, -2]}
    assert list(model.infer({"x": np.float32([1])}, ["b"])) == ["b"]


def test_tuple_of_dicts_is_merged(load_module: LoadModule) -> None:
    model = load_module(TupleOfDicts(), X, [("a", "float32", (None,)), ("text", "string", (2,))])
    assert infer(model, [1]) == {"a": [2], "text": ["one", "two"]}


def test_the_same_output_in_two_dicts(load_module: LoadModule) -> None:
    model = load_module(Duplicate(), X, PAIR)
    with pytest.raises(ModelError, match="'a' twice"):
        infer(model, [1])


def test_none_leaves_an_output_out(load_module: LoadModule) -> None:
    model = load_module(Maybe(), X, PAIR)
    assert infer(model, [1]) == {"a": [1], "b": [1]}
    with pytest.raises(SpecMismatchError, match="'b'"):
        infer(model, [-1])
    assert list(model.infer({"x": np.float32([-1])}, ["a"])) == ["a"]


@pytest.mark.parametrize(
    ("module", "dtype", "shape", "expected"),
    [
        (ReturnsInt(), "int64", (), 3),
        (ReturnsFloat(), "float64", (), 0.25),
        (ReturnsBool(), "bool", (), True),
        (ReturnsString(), "string", (), "text"),
        (ReturnsInts(), "int64", (2,), [1, 2]),
    ],
)
def test_python_values(
    load_module: LoadModule, module: nn.Module, dtype: str, shape: tuple[int, ...], expected: object
) -> None:
    model = load_module(module, X, [("out", dtype, shape)])
    assert infer(model, [1, 2, 3]) == {"out": expected}


def test_views_become_dense(load_module: LoadModule) -> None:
    outputs = [
        ("transposed", "float32", (4, 2)),
        ("strided", "float32", (2, 2)),
        ("expanded", "float32", (2, 2)),
        ("row", "float32", (4,)),
    ]
    model = load_module(Views(), [("x", "float32", (2, 4))], outputs)
    x = np.arange(8, dtype=np.float32).reshape(2, 4)
    found = model.infer({"x": x})
    np.testing.assert_array_equal(found["transposed"], x.T)
    np.testing.assert_array_equal(found["strided"], x[:, ::2])
    np.testing.assert_array_equal(found["expanded"], np.zeros((2, 2)))
    np.testing.assert_array_equal(found["row"], x[1])
    assert all(value.flags.c_contiguous for value in found.values())


def test_lazy_conjugates_and_negatives(load_module: LoadModule) -> None:
    outputs = [("conjugate", "complex64", (None,)), ("negative", "float32", (None,))]
    model = load_module(Conjugate(), [("x", "complex64", (None,))], outputs)
    found = model.infer({"x": np.complex64([1 + 2j, 3 - 4j])})
    assert found["conjugate"].tolist() == [1 - 2j, 3 + 4j]
    assert found["negative"].tolist() == [-2, 4]


@pytest.mark.parametrize(
    ("module", "message"),
    [
        (Quantized(), "dequantize"),
        (Sparse(), "to_dense"),
        (Float8(), "Float8_e4m3fn"),
        (ReturnsTensors(), r"torch\.stack"),
    ],
)
def test_what_cannot_leave_the_model(
    load_module: LoadModule, module: nn.Module, message: str
) -> None:
    model = load_module(module, X, [("out", "float32", (None,))])
    with pytest.raises(ModelError, match=message):
        infer(model, [1])


@pytest.mark.parametrize(
    ("module", "outputs", "message"),
    [
        (ReturnsInt(), PAIR, "returns int, and the package's outputs are 'a', 'b'"),
        (PlainTuple(), PAIR[:1], "an element for each"),
        (ReturnsFields(), [*PAIR, ("c", "float32", (None,))], "fields 'b', 'a'"),
    ],
)
def test_returns_that_cannot_give_the_outputs_are_refused_at_load(
    load: Load, write_package: WritePackage, module: nn.Module, outputs: list[Any], message: str
) -> None:
    package = write_package(module, X, outputs)
    with pytest.raises(SpecMismatchError, match=message):
        load(package)


def test_a_buffer_that_changes_later_does_not_change_what_was_returned(
    load_module: LoadModule,
) -> None:
    model = load_module(Buffer(), [("x", "float32", (2,))], [("out", "float32", (2,))])
    first = model.infer({"x": np.float32([1, 1])})["out"]
    second = model.infer({"x": np.float32([1, 1])})["out"]
    assert (first.tolist(), second.tolist()) == ([1, 1], [2, 2])
    second[:] = 100
    assert infer(model, [1, 1]) == {"out": [3, 3]}


class Aliases(nn.Module):
    """Returns memory that is its own, its caller's, and some of it twice; too large for a message."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(4096))
        self.weight = nn.Parameter(torch.full((4096,), 7.0))

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        self.seen.add_(x)
        y = x * 2
        return {
            "buffer": self.seen,
            "parameter": self.weight,
            "whole": y,
            "again": y,
            "slice": y[1000:3000],
            "input": x,
            "part": x[10:2010],
        }


def test_whatever_memory_results_are_in_they_stay_what_they_were(load_module: LoadModule) -> None:
    names = ("buffer", "parameter", "whole", "again", "slice", "input", "part")
    model = load_module(Aliases(), X, [(name, "float32", (None,)) for name in names])
    held = [model.infer({"x": np.full(4096, i, "float32")}) for i in range(1, 6)]
    for i in range(6, 30):
        model.infer({"x": np.full(4096, i, "float32")})
    for i, found in enumerate(held, 1):
        expected = {
            "buffer": i * (i + 1) // 2,
            "parameter": 7,
            "whole": 2 * i,
            "again": 2 * i,
            "slice": 2 * i,
            "input": i,
            "part": i,
        }
        assert {name: set(array.tolist()) for name, array in found.items()} == {
            name: {value} for name, value in expected.items()
        }
    assert held[0]["slice"].shape == held[0]["part"].shape == (2000,)


def test_two_outputs_that_share_memory_are_not_copied(load_module_here: LoadModule) -> None:
    model = load_module_here(Halves(), X, PAIR)
    found = model.infer({"x": np.float32([1, 2, 3, 4])})
    distance = found["b"].ctypes.data - found["a"].ctypes.data
    assert distance == 2 * found["a"].itemsize
    assert (found["a"].tolist(), found["b"].tolist()) == ([2, 3], [4, 5])
