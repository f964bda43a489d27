"""Writes the packages of torch_device_test, which runs on a machine with a GPU.

python make_device_fixtures.py FOLDER
"""

import argparse
from pathlib import Path

import torch
from make_contract_fixtures import CAPABILITIES, Identity, Spec, tensor, write_package
from torch import Tensor, nn


class Where(nn.Module):
    """Says on which GPU its input is, -1 for the CPU, and where it makes a tensor itself."""

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        index = -1
        made = -1
        if x.is_cuda:
            index = x.get_device()
            made = torch.zeros(1, device=torch.device("cuda")).get_device()
        return {"x_on": torch.tensor([index]), "made_on": torch.tensor([made])}


class Weights(nn.Module):
    """Says on which GPU its parameter is, -1 for the CPU."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1))

    def forward(self, x: Tensor) -> Tensor:
        return torch.tensor([self.weight.get_device() if self.weight.is_cuda else -1])


class Pinned(nn.Module):
    """1 if the memory of its input is pinned."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.tensor([1 if x.is_pinned() else 0])


class PlusOne(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x + 1


class Transposed(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return (x * 2).t()


class Threshold(nn.Module):
    """Takes a number where the package has a tensor."""

    def forward(self, x: Tensor, limit: float) -> Tensor:
        return torch.clamp(x, max=limit)


class Counter(nn.Module):
    total: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(1))

    def forward(self, x: Tensor) -> Tensor:
        self.total = self.total + x.sum()
        return self.total.reshape(1)


class Greedy(nn.Module):
    """Asks for as many GiB on its device as its input says."""

    def forward(self, x: Tensor) -> Tensor:
        size = int(x[0].item()) * 268435456 + 1
        return torch.empty(size, dtype=torch.float32, device=x.device)[:1].zero_() + 1


class Late(nn.Module):
    """Copies its input to the GPU without waiting; a later call returns the copy's sum.

    Returns a tensor of the CPU either way, so that nothing that is brought back waits for the copy.
    """

    seen: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(1))

    def forward(self, x: Tensor, keep: int) -> Tensor:
        if keep == 1:
            self.seen = x.to(device=torch.device("cuda"), non_blocking=True)
            return torch.zeros(1)
        return self.seen.sum().reshape(1).cpu()


def write_packages(root: Path) -> None:
    x, y = tensor("x"), tensor("y")
    index = [tensor("x_on", [1], "int64"), tensor("made_on", [1], "int64")]
    flag = tensor("y", [1], "int64")
    on_cpu = {"input_tensor_device": {"x": "CPU"}}
    write_package(root / "where", Where(), [x], index)
    write_package(root / "where_on_cpu", Where(), [x], index, **on_cpu)
    write_package(root / "weights", Weights(), [x], [flag])
    write_package(root / "pinned", Pinned(), [x], [flag], **on_cpu)
    write_package(root / "plus_one", PlusOne(), [x], [y])
    rows, columns = ["rows", "columns"], ["columns", "rows"]
    write_package(root / "transposed", Transposed(), [tensor("x", rows)], [tensor("y", columns)])
    write_package(root / "threshold", Threshold(), [x, tensor("limit", [], "float64")], [y])
    write_package(root / "counter", Counter(), [x], [tensor("y", [1])], stateful=True)
    write_package(root / "greedy", Greedy(), [x], [tensor("y", [1])])
    keep: Spec = tensor("keep", [], "int64")
    write_package(root / "late", Late(), [x, keep], [tensor("y", [1])], stateful=True, **on_cpu)
    dtypes = CAPABILITIES["dtypes"]
    assert isinstance(dtypes, list)
    for dtype in dtypes:
        if dtype != "string":
            write_package(
                root / f"identity_{dtype}",
                Identity(),
                [tensor("x", dtype=dtype)],
                [tensor("y", dtype=dtype)],
            )


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the packages of torch_device_test.")
    parser.add_argument("folder", type=Path)
    root: Path = parser.parse_args().folder
    write_packages(root)
    (root / "done").write_text(f"{torch.cuda.device_count()}\n")


if __name__ == "__main__":
    main()
