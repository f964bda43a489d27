"""Packages TorchScript modules."""

import os
from typing import TYPE_CHECKING

from neuropod.errors import InvalidArgumentError
from neuropod.packaging import PackageDraft, packager

if TYPE_CHECKING:
    import torch

__all__ = ["create_torchscript_neuropod"]

_MODEL_NAME = "model.pt"

# torch ends the process when the disk fills up while it writes a file. Modules up to this size are
# serialized in memory first; for larger ones the space is looked at before.
_MAX_BYTES_IN_MEMORY = 512 << 20
_RESERVE_BYTES = 64 << 20


@packager(platform="torchscript")
def create_torchscript_neuropod(
    draft: PackageDraft,
    *,
    module: "torch.jit.ScriptModule | None" = None,
    module_path: str | os.PathLike[str] | None = None,
) -> None:
    """Packages a TorchScript module.

    module: a `torch.jit.ScriptModule` (of `torch.jit.script` or `torch.jit.trace`). Its `forward`
        takes the inputs by name, or one dict of them, and returns a dict, a named tuple, a tuple of
        dicts, or, if the spec has one output, a tensor or a list of strings.
    module_path: a file that `torch.jit.save` wrote. Exactly one of the two.
    """
    if (module is None) == (module_path is None):
        given = "none" if module is None else "both"
        raise InvalidArgumentError(
            f"create_torchscript_neuropod needs exactly one of module and module_path, not {given}"
        )
    target = draft.data_folder / _MODEL_NAME
    if module_path is not None:
        draft.copy_file(module_path, target)
        return
    assert module is not None
    _check_is_script_module(module)
    size = _size_of_weights(module)
    if size <= _MAX_BYTES_IN_MEMORY:
        target.write_bytes(module.save_to_buffer())
    else:
        draft.require_free_space(size + _RESERVE_BYTES)
        module.save(str(target))


def _check_is_script_module(module: object) -> None:
    import torch

    if not isinstance(module, torch.jit.ScriptModule):
        hint = (
            "; pass torch.jit.script(module) or torch.jit.trace(module, example_inputs)"
            if isinstance(module, torch.nn.Module)
            else ""
        )
        raise InvalidArgumentError(
            f"module must be a torch.jit.ScriptModule, not {type(module).__name__}{hint}"
        )


def _size_of_weights(module: "torch.jit.ScriptModule") -> int:
    """Bytes of parameters and buffers, which is nearly all of a module's file."""
    tensors = [*module.parameters(), *module.buffers()]
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)
