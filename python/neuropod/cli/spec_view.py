"""Specs as the commands show them."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from neuropod._native import TensorSpec


def spec_dict(spec: "TensorSpec") -> dict[str, Any]:
    """A spec as `config.json` has it."""
    shape = [dim.symbol or (dim.value if dim.value >= 0 else None) for dim in spec.dims]
    result: dict[str, Any] = {"name": spec.name, "dtype": spec.type.name, "shape": shape}
    if spec.optional:
        result["optional"] = True
    return result


def shape_text(shape: list[Any]) -> str:
    """`(batch, 3, any)`; `()` is a single value."""
    words = ["any" if size is None else str(size) for size in shape]
    return f"({words[0]},)" if len(words) == 1 else f"({', '.join(words)})"
