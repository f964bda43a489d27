"""What a call and a load cost from Python, against the framework called directly, in interleaved rounds.

Prints one JSON object: for each case the median time of a round's call in µs for `direct` and `neuropod`,
their ratio, and the spread (10th and 90th percentile of the rounds).

    python benchmarks/python_overhead.py [--only addition]
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from neuropod import load_neuropod
from neuropod.packagers import create_torchscript_neuropod


class Addition(torch.nn.Module):
    """Two float32[16] → their sum."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"sum": x + y}


class Identity(torch.nn.Module):
    """uint8[1200, 1920, 3] → the same memory."""

    def forward(self, image: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"image": image}


def package(folder: Path, name: str, module: torch.nn.Module, specs: tuple[list, list]) -> Path:
    path = folder / f"{name}.neuropod"
    create_torchscript_neuropod(
        neuropod_path=str(path),
        model_name=name,
        module=torch.jit.script(module),
        input_spec=specs[0],
        output_spec=specs[1],
        overwrite=True,
    )
    return path


def interleaved(calls: dict[str, Callable[[], Any]], rounds: int, repeat: int) -> dict[str, Any]:
    """Median µs of one call for each of `calls`, measured in turns of `repeat` calls."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        for _ in range(repeat):
            call()
    for _ in range(rounds):
        for name, call in calls.items():
            start = time.perf_counter_ns()
            for _ in range(repeat):
                call()
            times[name].append((time.perf_counter_ns() - start) / repeat / 1000)
    result: dict[str, Any] = {}
    for name, values in times.items():
        deciles = statistics.quantiles(values, n=10)
        result[name] = {
            "median_us": round(statistics.median(values), 3),
            "p10_us": round(deciles[0], 3),
            "p90_us": round(deciles[-1], 3),
        }
    return result


def addition(folder: Path) -> dict[str, Any]:
    names = ("x", "y")
    spec = [{"name": n, "dtype": "float32", "shape": (16,)} for n in names]
    out = [{"name": "sum", "dtype": "float32", "shape": (16,)}]
    path = package(folder, "addition", Addition(), (spec, out))
    scripted = torch.jit.script(Addition())
    x, y = np.ones(16, "float32"), np.full(16, 2, "float32")
    tensor_x, tensor_y = torch.from_numpy(x), torch.from_numpy(y)
    with (
        load_neuropod(path) as model,
        load_neuropod(path, use_ope=True, threads=1) as worker,
        torch.no_grad(),
    ):
        own_x, own_y = worker.allocate("x", x.shape), worker.allocate("y", y.shape)
        own_x[:], own_y[:] = x, y
        return interleaved(
            {
                "direct": lambda: scripted(torch.from_numpy(x), torch.from_numpy(y))["sum"].numpy(),
                "direct_on_torch_tensors": lambda: scripted(tensor_x, tensor_y),
                "neuropod": lambda: model.infer({"x": x, "y": y}),
                "out_of_process": lambda: worker.infer({"x": own_x, "y": own_y}),
            },
            rounds=101,
            repeat=500,
        )


def image(folder: Path) -> dict[str, Any]:
    spec = [{"name": "image", "dtype": "uint8", "shape": (1200, 1920, 3)}]
    path = package(folder, "image", Identity(), (spec, spec))
    scripted = torch.jit.script(Identity())
    picture = np.zeros((1200, 1920, 3), "uint8")
    with (
        load_neuropod(path) as model,
        load_neuropod(path, use_ope=True, threads=1) as worker,
        torch.no_grad(),
    ):
        own = worker.allocate("image", picture.shape)
        own[:] = picture
        return interleaved(
            {
                "direct": lambda: scripted(torch.from_numpy(picture))["image"].numpy(),
                "neuropod": lambda: model.infer({"image": picture}),
                "out_of_process": lambda: worker.infer({"image": own}),
                "out_of_process_ordinary_array": lambda: worker.infer({"image": picture}),
            },
            rounds=101,
            repeat=500,
        )


def hashing(folder: Path) -> dict[str, Any]:
    """Seconds that verifying 256 MiB takes while loading, and the speed `openssl speed` reports."""
    size = 256 * 2**20
    spec = [{"name": "x", "dtype": "float32", "shape": (1,)}]

    class Holder(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("weights", torch.rand(size // 4))

        def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
            return {"x": x}

    path = folder / "big.neuropod"
    create_torchscript_neuropod(
        neuropod_path=str(path),
        model_name="big",
        module=torch.jit.script(Holder()),
        input_spec=spec,
        output_spec=spec,
        package_as_zip=False,
        overwrite=True,
    )
    seconds: dict[bool, list[float]] = {True: [], False: []}
    for _ in range(5):
        for verify, values in seconds.items():
            start = time.perf_counter()
            load_neuropod(path, verify_hashes=verify).close()
            values.append(time.perf_counter() - start)
    extra = statistics.median(seconds[True]) - statistics.median(seconds[False])
    speed = subprocess.run(
        ["openssl", "speed", "-seconds", "1", "-bytes", str(2**20), "sha256"],
        capture_output=True,
        text=True,
        check=False,
    )
    last = speed.stdout.strip().splitlines()[-1].split()[-1] if speed.returncode == 0 else "0k"
    return {
        "load_unverified_s": round(statistics.median(seconds[False]), 4),
        "load_verified_s": round(statistics.median(seconds[True]), 4),
        "verify_mb_per_s": round(size / 1e6 / extra, 1),
        "openssl_mb_per_s": round(float(last.rstrip("k")) / 1000, 1),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=["addition", "image", "hashing"])
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    cases = {"addition": addition, "image": image, "hashing": hashing}
    with tempfile.TemporaryDirectory() as folder:
        results = {
            name: case(Path(folder))
            for name, case in cases.items()
            if arguments.only in (None, name)
        }
    json.dump(results, sys.stdout, indent=2)
    print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
