"""Every dtype, rank and layout goes in and comes out unchanged."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from torch import Tensor, nn
from torchscript_packages import LoadModule

NUMERIC: dict[str, Any] = {
    **{
        f"{kind}int{bits}": np.dtype(f"{kind}int{bits}")
        for kind in ("", "u")
        for bits in (8, 16, 32, 64)
    },
    **{name: np.dtype(name) for name in ("float16", "float32", "float64", "bool")},
    **{name: np.dtype(name) for name in ("complex64", "complex128")},
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
}
SHAPES = [
    (),
    (3,),
    (2, 3),
    (1, 2, 3),
    (2, 1, 2, 2),
    (1, 2, 1, 2, 3),
    (2, 1, 1, 2, 1, 2),
    (0,),
    (2, 0, 3),
]


class Identity(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x


class Clone(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.clone()


def extremes(dtype: np.dtype[Any], shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Random bits, so that every value of the dtype may occur; whole numbers of 0 and 1 for bool."""
    generator = np.random.default_rng(7)
    count = int(np.prod(shape, dtype=int))
    if dtype == np.bool_:
        return generator.integers(0, 2, shape).astype(bool)
    return np.frombuffer(generator.bytes(count * dtype.itemsize), dtype).reshape(shape).copy()


@pytest.mark.parametrize("dtype", NUMERIC)
def test_every_rank(load_module: LoadModule, dtype: str) -> None:
    for shape in SHAPES:
        spec = (dtype, [None] * len(shape))
        model = load_module(Clone(), [("x", *spec)], [("y", *spec)])
        x = extremes(NUMERIC[dtype], shape)
        y = model.infer({"x": x})["y"]
        assert (y.dtype, y.shape) == (x.dtype, x.shape)
        assert y.tobytes() == x.tobytes()


def test_arrays_of_any_layout(load_module: LoadModule) -> None:
    spec = [None, None]
    model = load_module(Identity(), [("x", "float32", spec)], [("y", "float32", spec)])
    base = np.arange(24, dtype=np.float32).reshape(4, 6)
    for x in (base.T, base[::2, ::-1], np.asfortranarray(base), base.astype(">f4")):
        np.testing.assert_array_equal(model.infer({"x": x})["y"], x)


def test_an_array_goes_through_without_a_copy(load_module_here: LoadModule) -> None:
    model = load_module_here(Identity(), [("x", "float32", ["n"])], [("y", "float32", ["n"])])
    x = np.arange(1000, dtype=np.float32)
    y = model.infer({"x": x})["y"]
    assert y.ctypes.data == x.ctypes.data
    address = x.ctypes.data
    del x
    model.close()
    assert y.ctypes.data == address
    np.testing.assert_array_equal(y, np.arange(1000))
