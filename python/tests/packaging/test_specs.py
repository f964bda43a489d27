import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuropod.errors import InvalidArgumentError
from neuropod.packaging.dtypes import ALLOWED_DTYPES, dtype_name, numpy_dtype
from neuropod.packaging.specs import canonical_specs


def spec(**changes):
    return {"name": "x", "dtype": "float32", "shape": ("batch", 3, None), **changes}


def test_writes_canonical_dtypes_and_shapes_as_lists():
    specs = [spec(dtype="double"), spec(name="y", dtype=str, shape=(np.int64(2),))]
    assert canonical_specs(specs, "input_spec") == [
        {"name": "x", "dtype": "float64", "shape": ["batch", 3, None]},
        {"name": "y", "dtype": "string", "shape": [2]},
    ]


def test_keeps_optional_only_where_it_is_true():
    specs = [spec(optional=True), spec(name="y", optional=False)]
    canonical = canonical_specs(specs, "input_spec")
    assert canonical[0]["optional"] is True
    assert "optional" not in canonical[1]


def test_takes_a_scalar_and_unicode_names():
    assert canonical_specs([spec(name="größe 你", shape=())], "input_spec")[0]["shape"] == []


@pytest.mark.parametrize("dimension", [0, -3, 1.5, True, 2**40, 2**31, b"n", [3], "", object()])
def test_refuses_dimensions_that_are_none(dimension):
    with pytest.raises(InvalidArgumentError, match="input_spec 'x'"):
        canonical_specs([spec(shape=(None, dimension))], "input_spec")


@pytest.mark.parametrize("shape", [None, "123", 3, {"batch": 3}, {3}])
def test_refuses_shapes_that_are_no_sequence(shape):
    with pytest.raises(ValueError, match=r"input_spec 'x': 'shape' must be"):
        canonical_specs([spec(shape=shape)], "input_spec")


@pytest.mark.parametrize("dtype", ["float31", "datetime64", None, "object", "f4,i4", 7])
def test_refuses_unknown_dtypes_and_lists_the_known(dtype):
    with pytest.raises(InvalidArgumentError, match="packages have float32, float64, string"):
        canonical_specs([spec(dtype=dtype)], "output_spec")


@pytest.mark.parametrize("name", [5, True, None, "", "\ud800"])
def test_refuses_names_that_are_no_strings(name):
    with pytest.raises(InvalidArgumentError, match=r"the name in input_spec\[0\]"):
        canonical_specs([spec(name=name)], "input_spec")


def test_refuses_a_name_twice():
    with pytest.raises(InvalidArgumentError, match="names 'x' twice"):
        canonical_specs([spec(), spec()], "input_spec")


def test_refuses_an_unknown_key_with_the_nearest_name():
    with pytest.raises(InvalidArgumentError, match="'optionl'; did you mean 'optional'"):
        canonical_specs([spec(optionl=True)], "input_spec")


def test_refuses_a_missing_key():
    with pytest.raises(InvalidArgumentError, match="lacks 'dtype'"):
        canonical_specs([{"name": "x", "shape": ()}], "input_spec")


@pytest.mark.parametrize("specs", [None, "x", {"name": "x"}, [3]])
def test_refuses_specs_that_are_no_list_of_dicts(specs):
    with pytest.raises(InvalidArgumentError, match="input_spec"):
        canonical_specs(specs, "input_spec")


def test_refuses_optional_outputs():
    with pytest.raises(InvalidArgumentError, match="only inputs can be optional"):
        canonical_specs([spec(optional=True)], "output_spec")


@pytest.mark.parametrize("name", ALLOWED_DTYPES)
def test_numpy_knows_every_dtype(name):
    assert dtype_name(numpy_dtype(name)) == name
    assert dtype_name(name) == name


@given(
    st.lists(
        st.one_of(st.none(), st.integers(1, 2**31 - 1), st.text("abc", min_size=1)), max_size=6
    )
)
def test_canonical_specs_stay_what_they_are(shape):
    once = canonical_specs([spec(shape=shape)], "input_spec")
    assert canonical_specs(once, "input_spec") == once
