"""The native module under the name and with the classes that existing code knows.

`neuropod.load_neuropod` is the documented way; serialize() and deserialize() are documented here.
"""

from collections.abc import Sequence
from typing import Unpack

from neuropod import _native
from neuropod._native import (
    BackendLoadSpec,
    Dimension,
    TensorSpec,
    TensorType,
    deserialize,
    deserialize_dict,
    serialize,
)
from neuropod.options import LoadOptions, Path, native_options, native_overrides

__all__ = [
    "BackendLoadSpec",
    "Dimension",
    "Neuropod",
    "TensorSpec",
    "TensorType",
    "deserialize",
    "deserialize_dict",
    "serialize",
]


class Neuropod(_native.Model):
    """A loaded package: `infer`, `get_inputs`, `get_outputs`, `get_name`, `get_platform`.

    Takes the options of `neuropod.load_neuropod`.
    """

    def __init__(
        self,
        neuropod_path: Path,
        default_backend_overrides: Sequence[BackendLoadSpec] = (),
        **options: Unpack[LoadOptions],
    ) -> None:
        overrides = [*default_backend_overrides, *options.pop("backend_overrides", ())]
        super().__init__(neuropod_path, native_overrides(overrides), native_options(options))
