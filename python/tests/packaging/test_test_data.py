import contextlib
import io
import os
import pickle
import pickletools

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuropod.errors import CorruptPackageError, InvalidArgumentError, InvalidPackageError
from neuropod.packaging.arrays import as_arrays, read_npz, string_array, write_npz
from neuropod.packaging.plain_pickle import dump_plain_pickle, load_plain_pickle
from neuropod.packaging.test_data import read_test_data, write_test_data

PLAIN = {
    "matrix": np.arange(6.0).reshape(2, 3),
    "fortran": np.asfortranarray(np.arange(6).reshape(2, 3)),
    "strings": np.array(["x", "größe"]),
    "objects": np.array(["a", b"b", None], dtype=object),
    "bfloat16": np.ones(2, ml_dtypes.bfloat16),
    "big_endian": np.arange(3, dtype=">i4"),
    "empty": np.zeros((0, 3)),
    "scalar": np.float32(2.5),
    "python": [1, 2.5, "s", b"b", 3 + 4j, None, True, (1, {"a"}), {"k": [2]}, 2**100],
}


def assert_same(actual, expected):
    assert actual.keys() == expected.keys()
    for name, value in expected.items():
        if isinstance(value, list):
            assert actual[name] == value
        else:
            np.testing.assert_array_equal(actual[name], value, err_msg=name)
            assert actual[name].dtype.newbyteorder("=") == value.dtype.newbyteorder("=")


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_reads_plain_data_of_every_protocol(protocol):
    assert_same(load_plain_pickle(pickle.dumps(PLAIN, protocol)), PLAIN)


def test_writes_pickles_that_both_major_versions_of_numpy_read():
    file = io.BytesIO()
    dump_plain_pickle(PLAIN, file)
    modules = [arg for _, arg, _ in pickletools.genops(file.getvalue()) if isinstance(arg, str)]
    assert "numpy.core.multiarray" in modules
    assert not any(m.startswith("numpy._core") for m in modules)
    assert_same(pickle.loads(file.getvalue()), PLAIN)


class Hostile:
    def __reduce__(self):
        return os.system, ("touch /tmp/neuropod_was_here",)


@pytest.mark.parametrize(
    "value",
    [
        Hostile(),
        [os.system],
        eval,
        np.dtype([("field", "O")]),
        np.array([(1, 2)], dtype=[("a", int), ("b", int)]),
        np.arange(2).view(np.matrix),
        np.array(["2026-01-01"], "datetime64[D]"),
        slice(3),
    ],
    ids=repr,
)
def test_refuses_everything_that_is_not_plain(value):
    with pytest.raises(InvalidPackageError, match="pickled test data"):
        load_plain_pickle(pickle.dumps({"test_input": value}))


def test_refuses_a_dtype_whose_state_lies():
    """Fields of objects over raw bytes would make numpy follow pointers out of the file."""
    state = (3, "|", None, ("f",), {"f": (np.dtype("O"), 0)}, 8, 1, 0)
    hostile = pickle.dumps(_Reduced(np.dtype, ("f8", False, True), state))
    assert load_plain_pickle(hostile) == np.dtype("f8")


def test_refuses_to_set_the_state_of_anything_else():
    with pytest.raises(InvalidPackageError):
        load_plain_pickle(pickle.dumps(_Reduced(complex, (1, 2), {"a": 1})))


def test_refuses_other_codecs():
    with pytest.raises(InvalidPackageError, match="codec"):
        load_plain_pickle(b"c_codecs\nencode\n(Vabc\nVrot13\ntR.")


class _Reduced:
    """Pickles as a call and a state."""

    def __init__(self, function, arguments, state):
        self.reduced = (function, arguments, state)

    def __reduce__(self):
        return self.reduced


@pytest.mark.parametrize("data", [b"", b"\x80\x04", b"garbage", pickle.dumps(PLAIN)[:-40]])
def test_damaged_pickles_are_an_error(data):
    with pytest.raises(InvalidPackageError):
        load_plain_pickle(data)


@given(st.binary(max_size=60))
def test_random_bytes_never_raise_anything_else(data):
    with contextlib.suppress(InvalidPackageError):
        load_plain_pickle(data)


def test_npz_keeps_every_array_and_reads_with_numpy(tmp_path):
    arrays = {
        **{n: v for n, v in PLAIN.items() if n not in ("python", "objects", "scalar")},
        "file": np.arange(3),
        "a/b 你": np.eye(2),
        "trailing": string_array(["a\0", "b"], (2, 1)),
        "complex": np.array([1 + 2j], "complex64"),
        "no_strings": string_array([], (0, 2)),
    }
    write_npz(tmp_path / "a.npz", arrays)
    read = read_npz(tmp_path / "a.npz", {"bfloat16": "bfloat16"})
    assert read.keys() == arrays.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(read[name], array, err_msg=name)
        assert read[name].dtype == array.dtype
    with np.load(tmp_path / "a.npz") as plain:
        np.testing.assert_array_equal(plain["matrix"], arrays["matrix"])


def test_npz_is_the_same_bytes_each_time(tmp_path):
    for name in ("a", "b"):
        write_npz(tmp_path / name, {"y": np.arange(3), "x": np.array(["s"])})
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_npz_with_python_objects_is_refused(tmp_path):
    np.savez(tmp_path / "a.npz", x=np.array([Hostile()], dtype=object))
    with pytest.raises(CorruptPackageError, match="can't be read"):
        read_npz(tmp_path / "a.npz", {})


def test_test_data_travels_in_both_forms(tmp_path):
    inputs, outputs = {"x": np.arange(3)}, {"y": np.array(["a"])}
    write_test_data(tmp_path, inputs, outputs)
    assert_same(pickle.loads((tmp_path / "test_data.pkl").read_bytes())["test_input"], inputs)
    for name in ("npz", "pickle"):
        read = read_test_data(tmp_path, {"x": "int64", "y": "string"})
        assert_same(read["test_input"], inputs), name
        assert_same(read["test_output"], outputs)
        (tmp_path / "test_data" / "test_input.npz").unlink(missing_ok=True)
    (tmp_path / "test_data.pkl").unlink()
    assert read_test_data(tmp_path, {}) is None


SPECS = [
    {"name": "f", "dtype": "float32", "shape": [None]},
    {"name": "i", "dtype": "int8", "shape": [None]},
    {"name": "b", "dtype": "bool", "shape": []},
    {"name": "s", "dtype": "string", "shape": [None]},
]


def test_lists_and_numbers_take_the_dtype_of_the_spec():
    arrays = as_arrays(
        {"f": [0.1, float("nan")], "i": [1, -128], "b": True, "s": ["a", b"b"]}, SPECS, "t"
    )
    assert [str(a.dtype) for a in arrays.values()] == ["float32", "int8", "bool", "<U1"]
    assert arrays["s"].tolist() == ["a", "b"]


def test_arrays_stay_what_they_are():
    array = np.arange(2, dtype="float64")
    assert as_arrays({"f": array}, SPECS, "t")["f"] is array


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("i", [1, 300], r"t 'i' has .*300.* at \(1,\), which int8 can't hold"),
        ("i", [1.5], "1.5"),
        ("f", [1e300], "float32 can't hold"),
        ("f", ["a"], "should hold float32 numbers"),
        ("f", [[1], [1, 2]], "is no array"),
        ("s", [1], "should hold strings"),
        ("g", [1], "'g', which the spec doesn't"),
    ],
)
def test_values_that_do_not_fit_are_named(name, value, message):
    with pytest.raises(InvalidArgumentError, match=message):
        as_arrays({name: value}, SPECS, "t")
