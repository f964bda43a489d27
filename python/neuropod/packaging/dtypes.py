"""Names of element types, as packages write them."""

from typing import Any, Final

import numpy as np

from neuropod.errors import InvalidArgumentError, LoadFailedError

UPSTREAM_DTYPES: Final = (
    "float32",
    "float64",
    "string",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
)
"""The types that a package without `format_version` may use."""

NEW_DTYPES: Final = ("bool", "float16", "bfloat16", "complex64", "complex128")
"""The types that need `format_version` 1."""

ALLOWED_DTYPES: Final = UPSTREAM_DTYPES + NEW_DTYPES


def dtype_name(dtype: Any) -> str:
    """The name that packages use for `dtype`: `"double"` is `"float64"`, `str` is `"string"`.

    Takes what numpy takes as a dtype, and the names of packages themselves. Raises
    InvalidArgumentError for types that packages don't have.
    """
    if isinstance(dtype, str) and dtype in ALLOWED_DTYPES:
        return dtype
    try:
        parsed = np.dtype(dtype)
    except (TypeError, ValueError) as error:
        raise InvalidArgumentError(_unknown_dtype(dtype)) from error
    name = "string" if parsed.kind in "US" else parsed.name
    if dtype is None or name not in ALLOWED_DTYPES:
        raise InvalidArgumentError(_unknown_dtype(dtype))
    return name


def numpy_dtype(name: str) -> np.dtype[Any]:
    """The numpy type of a package's dtype name; `"string"` gives numpy's unicode type."""
    if name == "string":
        return np.dtype(np.str_)
    dtype: np.dtype[Any] = np.dtype(bfloat16_type() if name == "bfloat16" else name)
    return dtype


def bfloat16_type() -> Any:
    """`ml_dtypes.bfloat16`. LoadFailedError without ml_dtypes, which is compiled and so optional."""
    try:
        import ml_dtypes
    except ModuleNotFoundError as error:
        raise LoadFailedError(
            "bfloat16 arrays take ml_dtypes, which brings the type to NumPy and isn't installed; "
            "`pip install 'neuropod[bfloat16]'` adds it"
        ) from error
    return ml_dtypes.bfloat16


def _unknown_dtype(dtype: Any) -> str:
    return f"unknown dtype {dtype!r}; packages have {', '.join(ALLOWED_DTYPES)}"
