"""Which inputs reach which argument of forward(), and what is refused."""

from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torchscript_packages import Load, LoadModule, WritePackage

from neuropod import SpecMismatchError

OUT = [("out", "float32", (None,))]
TEXT_OUT = [("out", "string", (None,))]


class NamedArguments(nn.Module):
    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return x - y


class TensorDict(nn.Module):
    def forward(self, inputs: dict[str, Tensor]) -> Tensor:
        return inputs["x"] - inputs["y"]


class StringDict(nn.Module):
    def forward(self, inputs: dict[str, list[str]]) -> list[str]:
        return inputs["x"] + inputs["y"]


class UnionDict(nn.Module):
    def forward(self, inputs: dict[str, list[str] | Tensor]) -> dict[str, Tensor]:
        names = inputs["names"]
        values = inputs["values"]
        assert isinstance(names, list)
        assert isinstance(values, Tensor)
        return {"out": values * len(names)}


class DictAndArgument(nn.Module):
    def forward(self, inputs: dict[str, Tensor], scale: float = 1.0) -> Tensor:
        return inputs["x"] * scale


class StringList(nn.Module):
    def forward(self, x: list[str], suffix: str) -> list[str]:
        return [text + suffix for text in x]


class Scalars(nn.Module):
    def forward(self, whole: int, real: float, flag: bool) -> Tensor:
        return torch.tensor([float(whole), real, float(flag)])


class Number(nn.Module):
    def forward(self, x: Tensor, factor: int | float) -> Tensor:
        if isinstance(factor, int):
            return x * factor
        return x * -factor


class Lists(nn.Module):
    def forward(self, whole: list[int], real: list[float], flags: list[bool]) -> Tensor:
        count = 0
        for flag in flags:
            if flag:
                count += 1
        return torch.tensor([float(sum(whole)), sum(real), float(count)])


class TensorList(nn.Module):
    def forward(self, x: list[Tensor]) -> Tensor:
        total = torch.zeros_like(x[0])
        for row in x:
            total += row
        return total


class Tuples(nn.Module):
    def forward(self, size: tuple[int, int], rows: tuple[Tensor, Tensor]) -> Tensor:
        return rows[0] * size[0] + rows[1] * size[1]


class Defaults(nn.Module):
    def forward(
        self, x: Tensor, bias: Tensor | None = None, scale: int = 2, note: str | None = None
    ) -> Tensor:
        x = x * scale
        if bias is not None:
            x = x + bias
        return x


class AnyArgument(nn.Module):
    def forward(self, x: Any) -> Tensor:
        assert isinstance(x, Tensor)
        return x + 1


FLOATS = [("x", "float32", ("n",)), ("y", "float32", ("n",))]


@pytest.mark.parametrize("module", [NamedArguments(), TensorDict()])
def test_named_arguments_and_a_dict_take_the_same_inputs(
    load_module: LoadModule, module: nn.Module
) -> None:
    model = load_module(module, FLOATS, OUT)
    x, y = np.float32([1, 2]), np.float32([5, 7])
    assert model.infer({"y": y, "x": x})["out"].tolist() == [-4, -5]


def test_order_of_the_spec_does_not_matter(load_module: LoadModule) -> None:
    model = load_module(NamedArguments(), FLOATS[::-1], OUT)
    assert model.infer({"x": np.float32([3]), "y": np.float32([1])})["out"].tolist() == [2]


def test_dict_of_string_lists(load_module: LoadModule) -> None:
    model = load_module(
        StringDict(), [("x", "string", (None,)), ("y", "string", (None,))], TEXT_OUT
    )
    assert model.infer({"x": ["a", "😀"], "y": ["nul\0l"]})["out"].tolist() == ["a", "😀", "nul\0l"]


def test_dict_of_strings_or_tensors(load_module: LoadModule) -> None:
    model = load_module(
        UnionDict(), [("names", "string", (None,)), ("values", "float32", (None,))], OUT
    )
    outputs = model.infer({"names": ["a", "b"], "values": np.float32([1, 2])})
    assert outputs["out"].tolist() == [2, 4]


def test_a_dict_beside_an_argument_of_its_own(load_module: LoadModule) -> None:
    model = load_module(
        DictAndArgument(), [("x", "float32", (None,)), ("scale", "float64", ())], OUT
    )
    x = np.float32([1, 2])
    assert model.infer({"x": x})["out"].tolist() == [1, 2]
    assert model.infer({"x": x, "scale": 3.0})["out"].tolist() == [3, 6]


def test_list_of_strings_and_one_string(load_module: LoadModule) -> None:
    model = load_module(
        StringList(), [("x", "string", (None,)), ("suffix", "string", ())], TEXT_OUT
    )
    assert model.infer({"x": ["a", ""], "suffix": "!"})["out"].tolist() == ["a!", "!"]


@pytest.mark.parametrize("shape", [(), (1,), ("n",)])
def test_scalars_of_rank_0_or_one_element(load_module: LoadModule, shape: tuple[Any, ...]) -> None:
    specs = [("whole", "int64", shape), ("real", "float64", shape), ("flag", "bool", shape)]
    model = load_module(Scalars(), specs, OUT)
    dims = () if shape == () else (1,)
    inputs = {
        "whole": np.full(dims, -7, np.int64),
        "real": np.full(dims, 0.5),
        "flag": np.full(dims, True),
    }
    assert model.infer(inputs)["out"].tolist() == [-7, 0.5, 1]


def test_scalars_of_another_dtype_if_they_are_exact(load_module: LoadModule) -> None:
    specs = [("whole", "float16", ()), ("real", "uint64", ()), ("flag", "uint8", ())]
    model = load_module(Scalars(), specs, OUT)

    def infer(whole: float, real: int, flag: int) -> list[float]:
        inputs = {"whole": np.float16(whole), "real": np.uint64(real), "flag": np.uint8(flag)}
        return model.infer(inputs)["out"].tolist()

    assert infer(3.0, 2**63, 0) == [3, 2.0**63, 0]
    with pytest.raises(SpecMismatchError, match=r"'whole'.*int.*can't hold 3\.5 exactly"):
        infer(3.5, 0, 0)
    with pytest.raises(SpecMismatchError, match=r"'whole'.*int.*nan"):
        infer(float("nan"), 0, 0)
    with pytest.raises(SpecMismatchError, match=r"'real'.*float.*9007199254740993"):
        infer(0, 2**53 + 1, 0)
    with pytest.raises(SpecMismatchError, match=r"'flag'.*bool.*2"):
        infer(0, 0, 2)
    assert infer(1.0, 1, 1) == [1, 1, 1]


def test_uint64_beyond_an_int(load_module: LoadModule) -> None:
    specs = [("whole", "uint64", ()), ("real", "float32", ()), ("flag", "bool", ())]
    model = load_module(Scalars(), specs, OUT)
    with pytest.raises(SpecMismatchError, match=r"'whole'.*9223372036854775808"):
        model.infer({"whole": np.uint64(2**63), "real": np.float32(0), "flag": np.True_})


def test_a_scalar_with_two_elements(load_module: LoadModule) -> None:
    specs = [("whole", "int64", (None,)), ("real", "float64", ()), ("flag", "bool", ())]
    model = load_module(Scalars(), specs, OUT)
    with pytest.raises(SpecMismatchError, match=r"'whole'.*takes 1 element, found 2"):
        model.infer({"whole": np.int64([1, 2]), "real": 0.5, "flag": True})


@pytest.mark.parametrize(("dtype", "expected"), [("int32", 6), ("float32", -6)])
def test_a_scalar_of_either_kind(load_module: LoadModule, dtype: str, expected: float) -> None:
    model = load_module(Number(), [("x", "float32", (None,)), ("factor", dtype, ())], OUT)
    outputs = model.infer({"x": np.float32([2]), "factor": np.dtype(dtype).type(3)})
    assert outputs["out"].tolist() == [expected]


def test_lists_of_numbers(load_module: LoadModule) -> None:
    specs = [("whole", "int32", ("a",)), ("real", "float32", ("b",)), ("flags", "bool", ("c",))]
    model = load_module(Lists(), specs, OUT)
    inputs = {
        "whole": np.int32([1, 2, 3]),
        "real": np.float32([0.5]),
        "flags": np.array([True, False, True, True]),
    }
    assert model.infer(inputs)["out"].tolist() == [6, 0.5, 3]
    empty = {name: value[:0] for name, value in inputs.items()}
    assert model.infer(empty)["out"].tolist() == [0, 0, 0]


def test_list_of_tensors_is_the_rows(load_module: LoadModule) -> None:
    model = load_module(TensorList(), [("x", "float32", ("rows", 2))], OUT)
    assert model.infer({"x": np.float32([[1, 2], [3, 4], [5, 6]])})["out"].tolist() == [9, 12]


def test_tuples(load_module: LoadModule) -> None:
    specs = [("size", "int64", (2,)), ("rows", "float32", (2, "n"))]
    model = load_module(Tuples(), specs, OUT)
    inputs = {"size": np.int64([10, 100]), "rows": np.float32([[1, 2], [3, 4]])}
    assert model.infer(inputs)["out"].tolist() == [310, 420]


def test_defaults_are_kept_when_an_input_is_absent(load_module: LoadModule) -> None:
    specs = [("x", "float32", ("n",)), ("bias", "float32", ("n",)), ("scale", "int64", ())]
    model = load_module(Defaults(), specs, OUT)
    x = np.float32([1, 2])
    assert model.infer({"x": x})["out"].tolist() == [2, 4]
    assert model.infer({"x": x, "scale": np.int64(5)})["out"].tolist() == [5, 10]
    assert model.infer({"x": x, "bias": np.float32([1, 1])})["out"].tolist() == [3, 5]
    with pytest.raises(SpecMismatchError, match="'x'"):
        model.infer({"bias": x})


def test_an_argument_of_any_type(load_module: LoadModule) -> None:
    model = load_module(AnyArgument(), [("x", "float32", (None,))], OUT)
    assert model.infer({"x": np.float32([1])})["out"].tolist() == [2]


def test_a_traced_module(load_module: LoadModule) -> None:
    traced = torch.jit.trace(NamedArguments(), (torch.ones(2), torch.ones(2)), check_trace=False)
    model = load_module(traced, FLOATS, OUT)
    assert model.infer({"x": np.float32([1, 2, 3]), "y": np.float32([1, 1, 1])})[
        "out"
    ].tolist() == [0, 1, 2]


class Point(NamedTuple):
    x: Tensor


class TakesPoints(nn.Module):
    def forward(self, point: dict[int, Tensor]) -> Tensor:
        return point[0]


@pytest.mark.parametrize(
    ("module", "inputs", "message"),
    [
        (NamedArguments(), [*FLOATS, ("z", "float32", (None,))], r"'z' is no argument.*forward\(x"),
        (NamedArguments(), FLOATS[:1], "needs the argument 'y'"),
        (NamedArguments(), [("x", "string", (None,)), FLOATS[1]], "'x' is string.*Tensor"),
        (
            StringList(),
            [("x", "string", (None, None)), ("suffix", "string", ())],
            r"'x' is string.*List\[str\]",
        ),
        (
            Scalars(),
            [("whole", "int64", (2,)), ("real", "float32", ()), ("flag", "bool", ())],
            r"'whole' is int64 \(2,\).*int",
        ),
        (
            Scalars(),
            [("whole", "complex64", ()), ("real", "float32", ()), ("flag", "bool", ())],
            "'whole' is complex64",
        ),
        (Tuples(), [("size", "int64", (3,)), ("rows", "float32", (2, None))], "'size' is int64"),
        (TakesPoints(), [("point", "float32", (None,))], "'point'"),
    ],
)
def test_what_forward_cannot_take_is_refused_at_load(
    load: Load, write_package: WritePackage, module: nn.Module, inputs: list[Any], message: str
) -> None:
    package = write_package(module, inputs, OUT)
    with pytest.raises(SpecMismatchError, match=message):
        load(package)


def test_packages_without_a_format_version_are_refused_when_they_run(
    load_module: LoadModule,
) -> None:
    model = load_module(
        NamedArguments(), [*FLOATS, ("z", "float32", (None,))], OUT, format_version=None
    )
    x = np.float32([1])
    with pytest.raises(SpecMismatchError, match="'z' is no argument"):
        model.infer({"x": x, "y": x, "z": x})
    with pytest.raises(SpecMismatchError, match="'y' is missing"):
        model.infer({"x": x})
    assert model.infer({"x": x, "y": x})["out"].tolist() == [0]


def test_unchecked_inputs_of_the_wrong_kind_are_refused(
    load: Load, write_package: WritePackage
) -> None:
    package = write_package(NamedArguments(), FLOATS, OUT)
    with load(package, disable_shape_and_type_checking=True) as model:
        with pytest.raises(SpecMismatchError, match="'x'"):
            model.infer({"x": ["text"], "y": np.float32([1])})
        assert model.infer({"x": np.float32([1]), "y": np.float32([1])})["out"].tolist() == [0]
