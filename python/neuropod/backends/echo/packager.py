"""Packages models of the framework-free platform."""

import json
from typing import Any, Final

from neuropod.errors import InvalidArgumentError
from neuropod.packaging import PackageDraft, packager

_MODEL_NAME: Final = "echo.json"
_SEEDS: Final = 2**64


def _write_random(draft: PackageDraft, *, seed: int | None = None) -> None:
    model: dict[str, Any] = {
        "outputs": {spec["name"]: {"op": "random"} for spec in draft.output_spec}
    }
    if seed is not None:
        if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < _SEEDS:
            raise InvalidArgumentError(
                f"seed must be None or an int from 0 to 2**64 - 1, not {seed!r}"
            )
        model["seed"] = seed
    (draft.data_folder / _MODEL_NAME).write_text(json.dumps(model, sort_keys=True))


# What messages call it: the function that people use.
_write_random.__name__ = "create_random_neuropod"
package_random = packager(platform="echo")(_write_random)
"""The packager behind `neuropod.create_random_neuropod`."""
