"""`config.json` by the names that existing code imports; `neuropod.packaging.config` does the work."""

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from neuropod.packaging import config as _config
from neuropod.packaging.dtypes import ALLOWED_DTYPES, UPSTREAM_DTYPES, dtype_name
from neuropod.packaging.specs import Spec

__all__ = [
    "ALLOWED_DTYPES",
    "canonicalize_tensor_spec",
    "read_neuropod_config",
    "validate_neuropod_config",
    "validate_tensor_spec",
    "write_neuropod_config",
]


def validate_tensor_spec(spec: Iterable[Mapping[str, Any]]) -> None:
    """Checks a list of specs as `config.json` has them. Raises a ValueError that names the tensor."""
    _config.validate_specs(spec, "spec", UPSTREAM_DTYPES)


def validate_neuropod_config(config: Mapping[str, Any]) -> None:
    """Checks a whole configuration. Raises a ValueError that names the key."""
    _config.validate_config(config)


def canonicalize_tensor_spec(spec: Iterable[Mapping[str, Any]]) -> list[Spec]:
    """The specs with the dtype names that packages use; nothing else is changed or checked."""
    return [{**item, "dtype": dtype_name(item["dtype"])} for item in spec]


def write_neuropod_config(
    neuropod_path: str | os.PathLike[str],
    model_name: str,
    platform: str,
    input_spec: Iterable[Mapping[str, Any]],
    output_spec: Iterable[Mapping[str, Any]],
    platform_version_semver: str = "*",
    custom_ops: Iterable[str] | None = None,
    input_tensor_device: Mapping[str, str] | None = None,
    default_input_tensor_device: str = "GPU",
    **kwargs: Any,
) -> None:
    """Writes `config.json` into the folder `neuropod_path`.

    `custom_ops`: paths or names of libraries; base names are written. `kwargs`: the further arguments
    of `neuropod.packaging.config.build_config`. Raises a ValueError that names the key.
    """
    config = _config.build_config(
        model_name=model_name,
        platform=platform,
        input_spec=input_spec,
        output_spec=output_spec,
        platform_version_semver=platform_version_semver,
        custom_ops=[Path(op).name for op in custom_ops or ()],
        input_tensor_device=input_tensor_device,
        default_input_tensor_device=default_input_tensor_device,
        **kwargs,
    )
    _config.write_config(Path(neuropod_path), config)


def read_neuropod_config(neuropod_path: str | os.PathLike[str]) -> dict[str, Any]:
    """The configuration of a package that is a folder, checked. Raises a ValueError, or OSError."""
    config: dict[str, Any] = json.loads((Path(neuropod_path) / _config.CONFIG_NAME).read_bytes())
    _config.validate_config(config)
    return config
