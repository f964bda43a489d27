"""NumPy arrays in and out: every dtype, layout and byte order; what is lent and what is copied."""

import gc
import weakref
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
from echo_packages import DTYPES, write_package
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from neuropod import SpecMismatchError, load_neuropod

NUMERIC_DTYPES = tuple(dtype for dtype in DTYPES if dtype != "string")

Array = npt.NDArray[Any]


def numpy_dtype(name: str) -> np.dtype[Any]:
    return np.dtype(ml_dtypes.bfloat16) if name == "bfloat16" else np.dtype(name)


def sample(name: str, shape: tuple[int, ...]) -> Array:
    """Distinct values where the dtype allows it."""
    count = int(np.prod(shape, dtype=np.int64))
    return (np.arange(count) % 100).astype(numpy_dtype(name)).reshape(shape)


def address(array: Array) -> int:
    return int(array.__array_interface__["data"][0])


def unaligned(array: Array) -> Array:
    """A copy whose elements don't lie at multiples of their size."""
    memory = np.zeros(array.nbytes + 1, np.uint8)
    copy = memory[1:].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def read_only(array: Array) -> Array:
    copy = array.copy()
    copy.flags.writeable = False
    return copy


def spaced(array: Array) -> Array:
    """A view of every second element of every axis."""
    wide = np.zeros([2 * size for size in array.shape], array.dtype)
    view = wide[(..., *(slice(None, None, 2) for _ in array.shape))]
    view[...] = array
    return view


def reversed_copy(array: Array) -> Array:
    """Equal values under negative strides."""
    flip = (..., *(slice(None, None, -1) for _ in array.shape))
    return array[flip].copy()[flip]


LAYOUTS = {
    "c_contiguous": np.copy,
    "fortran": lambda array: array.copy("F"),
    "spaced": spaced,
    "negative_strides": reversed_copy,
    "transposed": lambda array: array.T.copy().T,
    "unaligned": unaligned,
    "read_only": read_only,
    "swapped": lambda array: array.astype(array.dtype.newbyteorder()),
    "swapped_spaced": lambda array: spaced(array.astype(array.dtype.newbyteorder())),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", NUMERIC_DTYPES)
def test_round_trip(identity: Any, dtype: str, layout: str) -> None:
    for shape in [(), (1,), (5,), (2, 3), (2, 0, 3), (2, 3, 4, 2)]:
        expected = sample(dtype, shape)
        given_array = LAYOUTS[layout](expected)
        before = given_array.copy()
        got = identity(dtype, [None] * len(shape)).infer({"x": given_array})["y"]
        assert got.dtype == numpy_dtype(dtype)
        assert got.shape == shape
        np.testing.assert_array_equal(got, expected)
        np.testing.assert_array_equal(given_array, before)


@settings(max_examples=200, deadline=None)
@given(data=st.data(), dtype=st.sampled_from([d for d in NUMERIC_DTYPES if d != "bfloat16"]))
def test_any_array_round_trips(identity: Any, data: st.DataObject, dtype: str) -> None:
    order = data.draw(st.sampled_from("<>"))
    shape = data.draw(hnp.array_shapes(min_dims=0, max_dims=6, min_side=0, max_side=4))
    array = data.draw(hnp.arrays(np.dtype(dtype).newbyteorder(order), shape))
    axes = data.draw(st.permutations(range(len(shape))))
    array = array.transpose(axes)
    if array.ndim:
        steps = data.draw(
            st.lists(st.sampled_from([1, 2, -1, -2]), min_size=array.ndim, max_size=array.ndim)
        )
        array = array[tuple(slice(None, None, step) for step in steps)]
    got = identity(dtype, [None] * array.ndim).infer({"x": array})["y"]
    assert got.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(got, array)


def test_broadcast_view_is_written_out(identity: Any) -> None:
    view = np.broadcast_to(np.float32([1, 2, 3]), (4, 3))
    got = identity("float32", [None, None]).infer({"x": view})["y"]
    np.testing.assert_array_equal(got, view)


def test_contiguous_array_is_lent(identity: Any) -> None:
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    got = identity("float32", [None, None]).infer({"x": array})["y"]
    assert address(got) == address(array)


@pytest.mark.parametrize("layout", [name for name in LAYOUTS if name not in ("c_contiguous",)])
def test_other_layouts_are_copied(identity: Any, layout: str) -> None:
    array = LAYOUTS[layout](np.arange(6, dtype=np.float32).reshape(2, 3))
    got = identity("float32", [None, None]).infer({"x": array})["y"]
    assert not np.shares_memory(got, array)


def test_read_only_array_is_never_written(tmp_path: Any) -> None:
    package = write_package(
        tmp_path / "increment",
        inputs=[("x", "float32", [None])],
        outputs=[("y", "float32", [None])],
        model={"outputs": {"y": {"op": "increment", "input": "x"}}},
    )
    array = read_only(np.zeros(4, np.float32))
    with load_neuropod(package) as model:
        got = model.infer({"x": array})["y"]
        np.testing.assert_array_equal(got, np.ones(4, np.float32))
        np.testing.assert_array_equal(array, np.zeros(4, np.float32))
        # A writable one is the caller's word that the model may work in it.
        writable = np.zeros(4, np.float32)
        model.infer({"x": writable})
        np.testing.assert_array_equal(writable, np.ones(4, np.float32))


def test_output_is_writable_and_owns_its_memory(addition: Any) -> None:
    x = np.ones(16, np.float32)
    out = addition.infer({"x": x, "y": x})["out"]
    addition.close()
    gc.collect()
    assert out.flags.writeable
    assert out.flags.c_contiguous
    assert out.flags.aligned
    out += 1
    np.testing.assert_array_equal(out, np.full(16, 3, np.float32))


def test_output_over_an_input_keeps_it_alive(identity: Any) -> None:
    array = np.arange(4, dtype=np.float32)
    alive = weakref.ref(array)
    got = identity("float32", [None]).infer({"x": array})["y"]
    del array
    gc.collect()
    assert alive() is not None
    np.testing.assert_array_equal(got, [0, 1, 2, 3])
    del got
    gc.collect()
    assert alive() is None


def test_subclasses_of_ndarray_are_arrays(identity: Any) -> None:
    class Tagged(np.ndarray):
        pass

    array = np.arange(3, dtype=np.float32).view(Tagged)
    got = identity("float32", [None]).infer({"x": array})["y"]
    np.testing.assert_array_equal(got, [0, 1, 2])
    assert type(got) is np.ndarray


def test_memmap(identity: Any, tmp_path: Any) -> None:
    np.arange(5, dtype=np.int64).tofile(tmp_path / "data")
    array = np.memmap(tmp_path / "data", np.int64, "r")
    np.testing.assert_array_equal(identity("int64", [None]).infer({"x": array})["y"], range(5))


def test_numpy_scalars(identity: Any) -> None:
    for dtype in NUMERIC_DTYPES:
        scalar = numpy_dtype(dtype).type(1)
        got = identity(dtype, []).infer({"x": scalar})["y"]
        assert got.shape == ()
        assert got == scalar


def test_both_numbers_of_int64(identity: Any) -> None:
    # `long` and `long long` are two dtypes for NumPy.
    for code in "qlQL":
        array = np.array([1, 2], code)
        name = "uint64" if code.isupper() else "int64"
        np.testing.assert_array_equal(identity(name, [None]).infer({"x": array})["y"], array)


def test_nan_and_infinities_pass(identity: Any) -> None:
    array = np.float32([np.nan, np.inf, -np.inf, -0.0])
    got = identity("float32", [None]).infer({"x": array})["y"]
    np.testing.assert_array_equal(got.view(np.uint32), array.view(np.uint32))


@pytest.mark.parametrize(
    ("array", "spec", "fragments"),
    [
        (np.zeros(2), "float32", ["float64", '.astype("float32")', "'x'", "echo_model"]),
        (np.zeros(2, np.float32), "float64", ["float32", '.astype("float64")']),
        (np.zeros(2, np.int64), "int32", ["int64", '.astype("int32")']),
        (np.zeros(2, np.uint8), "bool", ["uint8", '.astype("bool")']),
        (np.zeros(2), "bfloat16", [".astype(ml_dtypes.bfloat16)"]),
        (np.float64(1), "float32", ['.astype("float32")']),
        (np.array(["a"]), "float32", ["float32", "<U1"]),
        (np.zeros(2), "string", ["string", "float64"]),
        (np.array([1, 2], object), "float32", ["float32", "object"]),
        (np.zeros(2, np.longdouble), "float64", [np.dtype(np.longdouble).name, "no tensor has"]),
        (np.zeros(2, "datetime64[s]"), "int64", ["datetime64"]),
        (np.zeros(2, [("a", "<i4")]), "int32", ["[('a', '<i4')]"]),
        (np.ma.masked_array([1.0, 2.0], [True, False], np.float32), "float32", [".filled("]),
    ],
    ids=str,
)
def test_other_dtypes_are_refused(
    identity: Any, array: Any, spec: str, fragments: list[str]
) -> None:
    with pytest.raises(SpecMismatchError) as caught:
        identity(spec, [None]).infer({"x": array})
    for fragment in fragments:
        assert fragment in str(caught.value)
