"""Packages written by hand: the plug-in alone is tested, without the packager's self-tests."""

import json
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from neuropod.executor import Neuropod

Spec = tuple[str, str, Sequence[int | str | None]] | Mapping[str, Any]
"""Name, dtype and shape, or the entry of config.json itself."""

Load = Callable[..., Neuropod]
LoadModule = Callable[..., Neuropod]
WritePackage = Callable[..., Path]


def scripted(module: torch.nn.Module) -> torch.jit.ScriptModule:
    if isinstance(module, torch.jit.ScriptModule):
        return module
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return torch.jit.script(module.eval())


def write_torchscript_package(
    root: Path,
    module: torch.nn.Module | bytes,
    inputs: Sequence[Spec],
    outputs: Sequence[Spec],
    **config: Any,
) -> Path:
    """Makes the package directory `root`.

    `module` may be the bytes of the model's file. `config` adds to config.json; None leaves a key out.
    """
    data = root / "0" / "data"
    data.mkdir(parents=True)
    if isinstance(module, bytes):
        (data / "model.pt").write_bytes(module)
    else:
        scripted(module).save(str(data / "model.pt"))
    content = {
        "name": root.name,
        "platform": "torchscript",
        "format_version": 1,
        "input_spec": [_as_json(spec) for spec in inputs],
        "output_spec": [_as_json(spec) for spec in outputs],
        **config,
    }
    content = {key: value for key, value in content.items() if value is not None}
    (root / "config.json").write_text(json.dumps(content))
    return root


def _as_json(spec: Spec) -> dict[str, Any]:
    if isinstance(spec, Mapping):
        return dict(spec)
    name, dtype, shape = spec
    return {"name": name, "dtype": dtype, "shape": list(shape)}
