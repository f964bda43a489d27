"""Specs as the commands show them."""

from typing import Any

from neuropod.problem_api import spec_dict

__all__ = ["shape_text", "spec_dict"]


def shape_text(shape: list[Any]) -> str:
    """`(batch, 3, any)`; `()` is a single value."""
    words = ["any" if size is None else str(size) for size in shape]
    return f"({words[0]},)" if len(words) == 1 else f"({', '.join(words)})"
