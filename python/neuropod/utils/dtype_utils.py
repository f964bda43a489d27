"""Dtypes by the names that existing code imports."""

from typing import Any

import numpy as np

from neuropod.packaging.dtypes import ALLOWED_DTYPES, dtype_name, numpy_dtype

__all__ = ["get_dtype", "get_dtype_name"]


def get_dtype(arg: Any) -> np.dtype[Any]:
    """numpy's type for a dtype or a package's dtype name; `"string"` is numpy's unicode type."""
    if isinstance(arg, str) and arg in ALLOWED_DTYPES:
        return numpy_dtype(arg)
    dtype: np.dtype[Any] = np.dtype(arg)
    return dtype


def get_dtype_name(arg: Any) -> str:
    """The name that packages use for a dtype. Raises a ValueError if they have none."""
    return dtype_name(arg)
