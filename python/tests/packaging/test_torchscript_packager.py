import io
import json

import numpy as np
import pytest
import torch

from neuropod.errors import InvalidArgumentError, NotFoundError
from neuropod.packagers import create_torchscript_neuropod

SPECS = {
    "model_name": "addition",
    "input_spec": [{"name": n, "dtype": "float32", "shape": ("batch",)} for n in ("x", "y")],
    "output_spec": [{"name": "out", "dtype": "float32", "shape": ("batch",)}],
}


class Addition(torch.nn.Module):
    def __init__(self, weights: int = 1) -> None:
        super().__init__()
        self.weights = torch.nn.Parameter(torch.rand(weights))

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"out": x + y}


@pytest.fixture(scope="module")
def module():
    return torch.jit.script(Addition())


def package_model(target):
    return torch.jit.load(io.BytesIO((target / "0" / "data" / "model.pt").read_bytes()))


def test_packages_a_module(module, tmp_path):
    target = tmp_path / "a"
    create_torchscript_neuropod(neuropod_path=target, module=module, package_as_zip=False, **SPECS)
    assert package_model(target)(torch.ones(2), torch.ones(2))["out"].tolist() == [2, 2]
    config = json.loads((target / "config.json").read_text())
    assert config["platform"] == "torchscript"
    assert not (target / "0" / "config.json").exists()


def test_packages_a_file(module, tmp_path):
    module.save(str(tmp_path / "model.pt"))
    target = tmp_path / "a"
    create_torchscript_neuropod(
        neuropod_path=target, module_path=tmp_path / "model.pt", package_as_zip=False, **SPECS
    )
    saved = (target / "0" / "data" / "model.pt").read_bytes()
    assert saved == (tmp_path / "model.pt").read_bytes()


def test_packaging_a_module_twice_gives_the_same_bytes(module, tmp_path):
    for name in ("a", "b"):
        create_torchscript_neuropod(neuropod_path=tmp_path / name, module=module, **SPECS)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_large_modules_are_written_without_a_copy_in_memory(module, tmp_path, monkeypatch):
    from neuropod.backends.torchscript import packager

    monkeypatch.setattr(packager, "_MAX_BYTES_IN_MEMORY", 0)
    create_torchscript_neuropod(
        neuropod_path=tmp_path / "a", module=module, package_as_zip=False, **SPECS
    )
    assert package_model(tmp_path / "a")(torch.ones(1), torch.ones(1))["out"].tolist() == [2]


@pytest.mark.parametrize("given", ["neither", "both"])
def test_takes_exactly_one_of_module_and_file(module, tmp_path, given):
    sources = {} if given == "neither" else {"module": module, "module_path": tmp_path / "m.pt"}
    with pytest.raises(ValueError, match="exactly one of module and module_path"):
        create_torchscript_neuropod(neuropod_path=tmp_path / "a", **sources, **SPECS)
    assert list(tmp_path.iterdir()) == []


def test_a_module_that_is_not_scripted_is_refused_with_the_way_to_script_it(tmp_path):
    with pytest.raises(InvalidArgumentError, match=r"not Addition; pass torch\.jit\.script"):
        create_torchscript_neuropod(neuropod_path=tmp_path / "a", module=Addition(), **SPECS)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(NotFoundError, match=r"m\.pt doesn't exist"):
        create_torchscript_neuropod(
            neuropod_path=tmp_path / "a", module_path=str(tmp_path / "m.pt"), **SPECS
        )


@pytest.mark.parametrize("in_memory", [1 << 30, 0])
def test_a_full_disk_raises_and_does_not_end_the_process(full_disk, monkeypatch, in_memory):
    """torch's own writer aborts the process there."""
    from neuropod.backends.torchscript import packager

    monkeypatch.setattr(packager, "_MAX_BYTES_IN_MEMORY", in_memory)
    monkeypatch.setattr(packager, "_RESERVE_BYTES", 1 << 50 if in_memory == 0 else 0)
    large = torch.jit.script(Addition(weights=1 << 20))
    with pytest.raises(OSError, match="packaging model 'addition'"):
        create_torchscript_neuropod(neuropod_path=full_disk / "a", module=large, **SPECS)
    assert list(full_disk.iterdir()) == []


def test_runs_what_it_packaged(module, tmp_path):
    x = np.arange(3, dtype="float32")
    create_torchscript_neuropod(
        neuropod_path=tmp_path / "a",
        module=module,
        test_input_data={"x": x, "y": torch.ones(3)},
        test_expected_out={"out": x + 1},
        **SPECS,
    )
    with pytest.raises(ValueError, match="self-test"):
        create_torchscript_neuropod(
            neuropod_path=tmp_path / "b",
            module=module,
            test_input_data={"x": x, "y": x},
            test_expected_out={"out": x - 1},
            **SPECS,
        )
