"""Values that aren't arrays: numbers, nested lists, tensors of other libraries; exact, or refused."""

import array as array_module
import math
import sys
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from neuropod import SpecMismatchError


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        ("float32", 0.5),
        ("float32", 3),
        ("float64", 2**53),
        ("int8", -128),
        ("int64", -(2**63)),
        ("uint64", 2**64 - 1),
        ("int32", 7.0),
        ("bool", True),
        ("bool", 0),
        ("float16", 2048),
        ("bfloat16", 1.5),
        ("complex64", 1 + 2j),
        ("complex128", 3),
        ("float32", math.inf),
    ],
)
def test_number_becomes_rank_0(identity: Any, dtype: str, value: Any) -> None:
    got = identity(dtype, []).infer({"x": value})["y"]
    assert got.shape == ()
    assert got == value


def test_nan_passes(identity: Any) -> None:
    assert math.isnan(identity("float32", []).infer({"x": math.nan})["y"])


@pytest.mark.parametrize(
    ("dtype", "value", "shape"),
    [
        ("float32", [1, 2.5], (2,)),
        ("float32", [], (0,)),
        ("int64", [[1, 2, 3], (4, 5, 6)], (2, 3)),
        ("uint8", ((0, 255),), (1, 2)),
        ("float32", [[], []], (2, 0)),
        ("int32", range(4), (4,)),
        ("float64", [np.float32(1.5), 2, np.int8(3)], (3,)),
        ("int32", [[[[1]]]], (1, 1, 1, 1)),
    ],
)
def test_nested_lists(identity: Any, dtype: str, value: Any, shape: tuple[int, ...]) -> None:
    got = identity(dtype, [None] * len(shape)).infer({"x": value})["y"]
    assert got.shape == shape
    np.testing.assert_array_equal(got, np.array(value, dtype))


def test_lists_of_arrays_are_stacked(identity: Any) -> None:
    rows = [np.float32([1, 2]), np.float32([3, 4])]
    got = identity("float32", [None, None]).infer({"x": rows})["y"]
    np.testing.assert_array_equal(got, [[1, 2], [3, 4]])
    with pytest.raises(SpecMismatchError, match=r"float64.*astype"):
        identity("float32", [None, None]).infer({"x": [np.zeros(2), np.zeros(2)]})


@pytest.mark.parametrize(
    ("dtype", "value", "fragments"),
    [
        ("int32", 1.5, ["1.5", "not a whole number", "int32"]),
        ("uint8", 300, ["300", "out of the range", "uint8"]),
        ("uint8", -1, ["-1", "out of the range"]),
        ("int64", 2**63, [str(2**63), "out of the range"]),
        ("uint64", -1, ["out of the range"]),
        ("int64", 1e19, ["out of the range"]),
        ("int32", math.nan, ["nan", "not a whole number"]),
        ("float64", 2**53 + 1, [str(2**53 + 1), "exactly", "float64"]),
        ("float32", 2**24 + 1, [str(2**24 + 1), "exactly", "float32"]),
        ("float16", 2049, ["2049", "exactly", "float16"]),
        ("bfloat16", 257, ["257", "exactly"]),
        ("float64", 10**400, ["too large"]),
        ("float32", 1e39, ["too large"]),
        ("float16", 70000, ["too large"]),
        ("float32", 1e-60, ["too close to 0"]),
        ("bool", 2, ["2", "out of the range", "bool"]),
        ("float32", 1j, ["complex", "float32"]),
        ("float32", "1", ["'1'", "not a number", "float32"]),
        ("float32", b"1", ["not a number"]),
        ("float32", None, ["NoneType"]),
        ("float32", {"a": 1}, ["dict"]),
        ("float32", {1, 2}, ["set"]),
        ("float32", object(), ["object"]),
        ("float32", [1, None], ["[1]", "None", "not a number"]),
        ("uint8", [[0, 1], [2, 256]], ["[1][1]", "256"]),
        ("float32", [[1, 2], [3]], ["ragged", "[1]", "1 elements"]),
        ("float32", [[1, 2], 3], ["ragged", "[1]"]),
        ("float32", [1, [2]], ["ragged", "[1]"]),
    ],
    ids=str,
)
def test_inexact_values_are_refused(
    identity: Any, dtype: str, value: Any, fragments: list[str]
) -> None:
    ranks = np.ndim(value) if isinstance(value, (int, float, complex, str)) else 1
    with pytest.raises(SpecMismatchError) as caught:
        identity(dtype, [None] * ranks).infer({"x": value})
    for fragment in ["'x'", *fragments]:
        assert fragment in str(caught.value)


def test_list_that_holds_itself_is_refused(identity: Any) -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(SpecMismatchError, match="deep"):
        identity("float32", [None]).infer({"x": endless})


def test_huge_number_is_named_without_its_digits(identity: Any) -> None:
    with pytest.raises(SpecMismatchError) as caught:
        identity("int64", []).infer({"x": 10**5000})
    assert len(str(caught.value)) < 300


@settings(deadline=None)
@given(value=st.floats(allow_nan=False, allow_infinity=False, width=64))
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_python_floats_are_rounded_as_numpy_rounds(identity: Any, dtype: str, value: float) -> None:
    with np.errstate(over="ignore", under="ignore"):
        expected = np.dtype(dtype).type(value)
    model = identity(dtype, [None])
    if not np.isfinite(expected) or (expected == 0 and value != 0):
        with pytest.raises(SpecMismatchError):
            model.infer({"x": [value]})
    else:
        assert model.infer({"x": [value]})["y"][0] == expected


@settings(deadline=None)
@given(value=st.integers(-(2**70), 2**70))
@pytest.mark.parametrize("dtype", ["int8", "uint16", "int64", "uint64", "float32", "float64"])
def test_integers_come_out_equal_or_not_at_all(identity: Any, dtype: str, value: int) -> None:
    try:
        got = identity(dtype, []).infer({"x": value})["y"]
    except SpecMismatchError:
        info = np.iinfo(dtype) if "int" in dtype else None
        fits = info.min <= value <= info.max if info else int(np.dtype(dtype).type(value)) == value
        assert not fits
    else:
        assert int(got) == value


# Tensors of other libraries.


@pytest.mark.parametrize(
    "dtype",
    [
        torch.float32,
        torch.float64,
        torch.int8,
        torch.int16,
        torch.int32,
        torch.int64,
        torch.uint8,
        torch.uint16,
        torch.bool,
        torch.float16,
        torch.bfloat16,
        torch.complex64,
    ],
    ids=str,
)
def test_torch_tensor_is_lent(identity: Any, dtype: torch.dtype) -> None:
    tensor = torch.tensor([[0, 1, 1], [1, 0, 1]]).to(dtype)
    name = str(dtype).removeprefix("torch.")
    got = identity(name, [None, None]).infer({"x": tensor})["y"]
    assert got.__array_interface__["data"][0] == tensor.data_ptr()
    assert got.astype("complex64").tolist() == tensor.to(torch.complex64).tolist()


def test_contiguous_part_of_a_torch_tensor_is_lent(identity: Any) -> None:
    part = torch.arange(10, dtype=torch.float32)[3:7]
    got = identity("float32", [None]).infer({"x": part})["y"]
    assert got.__array_interface__["data"][0] == part.data_ptr()
    assert got.tolist() == [3, 4, 5, 6]


def test_strided_torch_tensor_is_copied(identity: Any) -> None:
    tensor = torch.arange(24, dtype=torch.float32).reshape(2, 3, 4).permute(2, 0, 1)[::2]
    got = identity("float32", [None, None, None]).infer({"x": tensor})["y"]
    assert got.tolist() == tensor.tolist()


def test_empty_and_rank_0_torch_tensors(identity: Any) -> None:
    assert identity("float32", []).infer({"x": torch.tensor(1.5)})["y"] == 1.5
    got = identity("float32", [None, None]).infer({"x": torch.empty(0, 3)})["y"]
    assert got.shape == (0, 3)


def test_torch_memory_lives_as_long_as_an_output_over_it(identity: Any) -> None:
    tensor = torch.arange(1000, dtype=torch.float32)
    got = identity("float32", [None]).infer({"x": tensor})["y"]
    del tensor
    torch.full((1000,), -1.0)
    np.testing.assert_array_equal(got, np.arange(1000))


def test_torch_tensor_with_gradient_is_refused_with_its_advice(identity: Any) -> None:
    with pytest.raises(SpecMismatchError, match="detach"):
        identity("float32", [None]).infer({"x": torch.ones(2, requires_grad=True)})


def test_torch_tensor_of_another_dtype_is_refused(identity: Any) -> None:
    with pytest.raises(SpecMismatchError, match=r"float64.*astype"):
        identity("float32", [None]).infer({"x": torch.zeros(2, dtype=torch.float64)})


def test_read_only_dlpack_is_copied(identity: Any) -> None:
    source = np.arange(3, dtype=np.float32)
    source.flags.writeable = False

    class Offers:
        def __dlpack__(self, **kwargs: Any) -> Any:
            return source.__dlpack__(**kwargs)

    got = identity("float32", [None]).infer({"x": Offers()})["y"]
    np.testing.assert_array_equal(got, source)
    assert not np.shares_memory(got, source)


def test_dlpack_without_versions(identity: Any) -> None:
    source = np.arange(3, dtype=np.float32)

    class OffersTheOldProtocol:
        def __dlpack__(self, stream: Any = None) -> Any:
            return source.__dlpack__()

    before = sys.getrefcount(source)
    got = identity("float32", [None]).infer({"x": OffersTheOldProtocol()})["y"]
    assert np.shares_memory(got, source)
    del got
    assert sys.getrefcount(source) == before


def test_array_interface_and_buffers(identity: Any) -> None:
    class Offers:
        __array_interface__ = np.arange(3, dtype=np.int32).__array_interface__

        def __init__(self) -> None:
            self.source = np.arange(3, dtype=np.int32)
            self.__array_interface__ = self.source.__array_interface__

    class Converts:
        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            return np.arange(3, dtype=np.int32)

    model = identity("int32", [None])
    for value in (Offers(), Converts(), array_module.array("i", [0, 1, 2])):
        np.testing.assert_array_equal(model.infer({"x": value})["y"], [0, 1, 2])
    got = identity("uint8", [None]).infer({"x": memoryview(bytearray(b"\x00\x01\x02"))})["y"]
    np.testing.assert_array_equal(got, [0, 1, 2])
