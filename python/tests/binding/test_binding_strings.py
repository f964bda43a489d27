"""Strings: UTF-8 on the way in, text on the way out, no character lost without a word."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuropod import SpecMismatchError

TEXTS = ["", "a", "zwei Wörter", "日本語", "🦊🦊", "in\0side", "x" * 100_000]


def infer(identity: Any, value: Any) -> Any:
    return identity("string", [None] * np.ndim(value)).infer({"x": value})["y"]


def test_unicode_array(identity: Any) -> None:
    got = infer(identity, np.array(TEXTS))
    assert got.dtype.kind == "U"
    assert got.tolist() == TEXTS


@pytest.mark.parametrize("order", ["<", ">"])
def test_unicode_array_of_either_byte_order_and_any_strides(identity: Any, order: str) -> None:
    array = np.array([["ä", "b", "c"], ["🦊", "", "f"]]).astype(f"{order}U3")[::-1, ::2]
    assert infer(identity, array).tolist() == [["🦊", "f"], ["ä", "c"]]


def test_byte_string_array(identity: Any) -> None:
    array = np.array([text.encode() for text in TEXTS])
    assert infer(identity, array).tolist() == TEXTS


def test_object_array_of_str_and_bytes(identity: Any) -> None:
    array = np.array([["a", b"b"], ["ü", b""]], object)
    got = infer(identity, array)
    assert got.shape == (2, 2)
    assert got.tolist() == [["a", "b"], ["ü", ""]]


def test_string_dtype(identity: Any) -> None:
    array = np.array(TEXTS, np.dtypes.StringDType())
    assert infer(identity, array).tolist() == TEXTS


def test_missing_string_is_refused(identity: Any) -> None:
    array = np.array(["a", None], np.dtypes.StringDType(na_object=None))
    with pytest.raises(SpecMismatchError, match="element 1 is a NoneType"):
        infer(identity, array)


def test_lists_and_single_strings(identity: Any) -> None:
    assert infer(identity, TEXTS).tolist() == TEXTS
    assert infer(identity, [["a"], [b"b"]]).tolist() == [["a"], ["b"]]
    assert infer(identity, [np.array(["a", "b"]), np.array(["c", "d"])]).tolist() == [
        ["a", "b"],
        ["c", "d"],
    ]
    for single in ("ä", "ä".encode(), np.str_("ä"), np.bytes_("ä".encode())):
        got = identity("string", []).infer({"x": single})["y"]
        assert got.shape == ()
        assert got.item() == "ä"


@pytest.mark.parametrize("shape", [(0,), (2, 0), (1,), ()])
def test_empty_arrays_and_empty_strings(identity: Any, shape: tuple[int, ...]) -> None:
    got = infer(identity, np.zeros(shape, "<U5"))
    assert got.shape == shape
    assert got.dtype.kind == "U"
    assert got.tolist() == np.zeros(shape, "<U5").tolist()


def test_trailing_nuls_survive(identity: Any) -> None:
    texts = ["a\0", "\0\0", "b"]
    got = infer(identity, texts)
    assert got.dtype == object
    assert got.tolist() == texts
    assert infer(identity, np.array(texts, object)).tolist() == texts


def test_bytes_that_are_no_text_come_back_as_bytes(identity: Any) -> None:
    blobs = [b"\xff\xfe\x00", b"text"]
    got = infer(identity, blobs)
    assert got.dtype == object
    assert got.tolist() == blobs


def test_padding_is_avoided_where_it_would_waste_memory(identity: Any) -> None:
    texts = ["x" * 1_000_000, *["y"] * 200]
    got = infer(identity, texts)
    assert got.dtype == object
    assert got.tolist() == texts


@pytest.mark.parametrize(
    "value", [np.array(["\ud800"]), np.array(["\ud800"], object), ["\ud800"], np.str_("\ud800")]
)
def test_lone_surrogate_is_refused(identity: Any, value: Any) -> None:
    with pytest.raises(SpecMismatchError, match="UTF-8"):
        infer(identity, value)


@pytest.mark.parametrize("value", [[1], 1.5, ["a", 2], np.array(["a", 1], object)], ids=str)
def test_numbers_are_no_strings(identity: Any, value: Any) -> None:
    with pytest.raises(SpecMismatchError, match=r"'x'.*str"):
        infer(identity, value)


@settings(deadline=None)
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), max_size=8))
def test_any_text_round_trips(identity: Any, texts: list[str]) -> None:
    assert identity("string", [None]).infer({"x": texts})["y"].tolist() == texts
    array = np.array(texts, "<U30")
    assert identity("string", [None]).infer({"x": array})["y"].tolist() == array.tolist()


def test_input_is_not_encoded_in_place(identity: Any) -> None:
    array = np.array(["ä", "b"])
    inputs = {"x": array}
    identity("string", [None]).infer(inputs)
    assert inputs == {"x": array}
    assert inputs["x"] is array
    assert array.tolist() == ["ä", "b"]
