"""`config.json`: the problem API of a package. docs/formats/package.md holds the grammar."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from neuropod.errors import InvalidArgumentError
from neuropod.packaging.dtypes import ALLOWED_DTYPES, UPSTREAM_DTYPES
from neuropod.packaging.nearest_name import did_you_mean
from neuropod.packaging.specs import canonical_shape, canonical_specs, checked_name

FORMAT_VERSION: Final = 1
"""The version that a package says when it uses what readers before versions don't know."""

CONFIG_NAME: Final = "config.json"

DEVICES: Final = ("CPU", "GPU")

_DESCRIPTIVE_KEYS = ("version", "description", "author", "license", "created")


def build_config(
    *,
    model_name: str,
    platform: str,
    input_spec: Iterable[Mapping[str, Any]],
    output_spec: Iterable[Mapping[str, Any]],
    platform_version_semver: str = "*",
    custom_ops: Iterable[str] = (),
    input_tensor_device: Mapping[str, str] | None = None,
    default_input_tensor_device: str = "GPU",
    stateful: bool = False,
    format_version: int | None = None,
    **descriptive: str | None,
) -> dict[str, Any]:
    """A checked configuration.

    `custom_ops`: base names inside `0/ops`. `descriptive`: `version`, `description`, `author`,
    `license`, `created`. Keys that older readers don't know are there only where they are used, and
    `format_version` only if one of them decides about calls (`stateful`, `optional`, a newer dtype) or
    if it is asked for: so the file of a plain package is byte for byte what older tools write. The
    version of every package stands in its manifest.
    Raises InvalidArgumentError (a ValueError) that names the key.
    """
    config: dict[str, Any] = {
        "name": model_name,
        "platform": platform,
        "platform_version_semver": platform_version_semver,
        "input_spec": canonical_specs(input_spec, "input_spec"),
        "output_spec": canonical_specs(output_spec, "output_spec"),
        "custom_ops": list(custom_ops),
    }
    input_names = [spec["name"] for spec in config["input_spec"]]
    config["input_tensor_device"] = _device_map(
        input_names, input_tensor_device, default_input_tensor_device
    )
    if not isinstance(stateful, bool):
        raise InvalidArgumentError(f"stateful must be True or False, not {stateful!r}")
    if stateful:
        config["stateful"] = True
    for key, value in descriptive.items():
        if key not in _DESCRIPTIVE_KEYS:
            raise InvalidArgumentError(f"unknown key {key!r}{did_you_mean(key, _DESCRIPTIVE_KEYS)}")
        if value is not None:
            config[key] = value
    if format_version is None and needs_format_version(config):
        format_version = FORMAT_VERSION
    if format_version is not None:
        config["format_version"] = format_version
    validate_config(config)
    return config


def needs_format_version(config: Mapping[str, Any]) -> bool:
    """Whether the configuration uses what a package without `format_version` can't say."""
    specs = [*config["input_spec"], *config["output_spec"]]
    return bool(config.get("stateful")) or any(
        spec.get("optional") or spec["dtype"] not in UPSTREAM_DTYPES for spec in specs
    )


def validate_config(config: Mapping[str, Any]) -> None:
    """Checks a whole configuration. Raises InvalidArgumentError (a ValueError) that names the key."""
    for key in ("name", "platform"):
        checked_name(config.get(key), f"{key!r} in the package's configuration")
    _check_format_version(config.get("format_version"))
    has_version = config.get("format_version") is not None
    allowed = ALLOWED_DTYPES if has_version else UPSTREAM_DTYPES
    for side in ("input_spec", "output_spec"):
        validate_specs(config.get(side, []), side, allowed)
    if not isinstance(config.get("platform_version_semver", "*"), str):
        raise InvalidArgumentError(
            "platform_version_semver must be a range such as '>=2.1 <3', not "
            f"{config['platform_version_semver']!r}"
        )
    for key in _DESCRIPTIVE_KEYS:
        if not isinstance(config.get(key, ""), str):
            raise InvalidArgumentError(f"{key} must be a string, not {config[key]!r}")
    _check_devices(config)


def validate_specs(
    specs: Any, side: str = "spec", allowed_dtypes: Iterable[str] = ALLOWED_DTYPES
) -> None:
    """Checks specs as they stand in a configuration: dtypes must be canonical already."""
    allowed = tuple(allowed_dtypes)
    for spec in specs:
        name = checked_name(spec.get("name"), f"the name of a tensor in {side}")
        if spec.get("dtype") not in allowed:
            hint = (
                f"; it needs format_version {FORMAT_VERSION}"
                if spec.get("dtype") in ALLOWED_DTYPES
                else ""
            )
            raise InvalidArgumentError(
                f"{side} {name!r} has the dtype {spec.get('dtype')!r}; expected one of "
                f"{', '.join(allowed)}{hint}"
            )
        canonical_shape(spec.get("shape"), f"{side} {name!r}")


def config_bytes(config: Mapping[str, Any]) -> bytes:
    """The content of `config.json`: the same configuration always gives the same bytes."""
    return json.dumps(config, indent=4, sort_keys=True).encode()


def write_config(package: Path, config: Mapping[str, Any]) -> None:
    (package / CONFIG_NAME).write_bytes(config_bytes(config))


def _check_format_version(version: Any) -> None:
    if version is None:
        return
    if isinstance(version, bool) or not isinstance(version, int) or version != FORMAT_VERSION:
        raise InvalidArgumentError(
            f"format_version must be {FORMAT_VERSION} or None, not {version!r}"
        )


def _device_map(
    input_names: list[str], devices: Mapping[str, str] | None, default: str
) -> dict[str, str]:
    for name in devices or {}:
        if name not in input_names:
            raise InvalidArgumentError(
                f"input_tensor_device has {name!r}, which input_spec doesn't"
                f"{did_you_mean(str(name), input_names)}"
            )
    if default not in DEVICES:
        raise InvalidArgumentError(
            f"default_input_tensor_device must be 'CPU' or 'GPU', not {default!r}"
        )
    return {name: (devices or {}).get(name, default) for name in input_names}


def _check_devices(config: Mapping[str, Any]) -> None:
    devices = config.get("input_tensor_device")
    if devices is None:
        return
    if not isinstance(devices, Mapping):
        raise InvalidArgumentError(f"input_tensor_device must be a dict, not {devices!r}")
    names = [spec["name"] for spec in config.get("input_spec", [])]
    for name, device in devices.items():
        if device not in DEVICES:
            raise InvalidArgumentError(
                f"input_tensor_device of {name!r} must be 'CPU' or 'GPU', not {device!r}"
            )
    for missing in [name for name in names if name not in devices]:
        raise InvalidArgumentError(f"input_tensor_device lacks the input {missing!r}")
    for extra in [name for name in devices if name not in names]:
        raise InvalidArgumentError(
            f"input_tensor_device has {extra!r}, which input_spec doesn't{did_you_mean(extra, names)}"
        )
