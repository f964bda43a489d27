"""Measures everything that docs/performance.md shows, in one run.

Builds the programs that need a framework, runs them, and prints one table per subject; all numbers go to
`build/benchmarks/results.json`. Ratios compare within one interleaved run; absolute times depend on the
machine.

    python benchmarks/run.py [--only core metrics linking python torchscript out_of_process]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from neuropod.backend_installer.build import configure_command
from neuropod.backend_installer.framework import find_framework
from neuropod.backend_installer.sources import find_sources
from neuropod.backend_installer.toolchain import find_toolchain, parallel_jobs

ROOT = Path(__file__).resolve().parents[1]
RELEASE = ROOT / "build" / "release"
BUILD = ROOT / "build" / "benchmarks"
TORCHSCRIPT = ROOT / "source" / "neuropod" / "backends" / "torchscript"

# One thread per operation: what is measured is the cost of a call, not how a framework shares cores.
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def output_of(command: Sequence[str | Path]) -> str:
    done = subprocess.run(
        [str(part) for part in command], cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True
    )
    if done.returncode != 0:
        raise SystemExit(f"{command[0]} failed ({done.returncode}):\n{done.stdout}{done.stderr}")
    return done.stdout


def core() -> dict[str, Any]:
    """Nanoseconds of the core's own parts."""
    report = json.loads(
        output_of(
            [
                RELEASE / "bin" / "core_benchmark",
                "--benchmark_format=json",
                "--benchmark_repetitions=7",
                "--benchmark_report_aggregates_only=true",
            ]
        )
    )
    return {
        entry["run_name"]: {"median_ns": round(entry["real_time"], 1)}
        for entry in report["benchmarks"]
        if entry["aggregate_name"] == "median"
    }


def metrics() -> dict[str, Any]:
    """What counting a call adds, with and without in turns, by the number of inputs; and what looking
    at the counts costs."""
    program = RELEASE / "bin" / "metrics_benchmark"
    report = json.loads(output_of([program, "--benchmark_format=json"]))
    results: dict[str, Any] = {}
    for entry in report["benchmarks"]:
        if "added_ns" in entry:
            figures = ("off_ns", "on_ns", "added_ns")
            results[entry["name"]] = {figure: round(entry[figure], 1) for figure in figures}
        else:
            results[entry["name"]] = {"ns": round(entry["real_time"], 1)}
    return results


def linking() -> dict[str, Any]:
    """Resident memory of a program that links libneuropod and loads nothing, against a bare one."""
    bare, linked = (
        json.loads(output_of([RELEASE / "bin" / name]))
        for name in ("bare_program", "linked_program")
    )
    return {
        "bare_mib": round(bare["resident_kib"] / 1024, 2),
        "linked_mib": round(linked["resident_kib"] / 1024, 2),
        "difference_mib": round((linked["resident_kib"] - bare["resident_kib"]) / 1024, 2),
        "files_more": sorted(
            Path(f).name
            for f in set(linked["files"]) - set(bare["files"])
            if "linked_program" not in f
        ),
    }


def python() -> dict[str, Any]:
    return json.loads(output_of([sys.executable, ROOT / "benchmarks" / "python_overhead.py"]))


def build_torchscript_program() -> Path:
    sources = find_sources("torchscript")
    toolchain = find_toolchain()
    folder = BUILD / "torchscript"
    output_of(
        configure_command(
            sources,
            find_framework(sources),
            toolchain,
            folder,
            source_folder=TORCHSCRIPT,
            definitions=["NEUROPOD_BUILD_BENCHMARKS=ON"],
        )
    )
    output_of([toolchain.cmake, "--build", folder, "--parallel", str(parallel_jobs())])
    return folder


def torchscript() -> dict[str, Any]:
    """The framework called directly against Neuropod, from C++."""
    return json.loads(output_of(torchscript_program("torchscript_overhead")))


def out_of_process() -> dict[str, Any]:
    """What a process of its own costs a model, from C++; how workers start, end and share CPUs."""
    ENVIRONMENT["NEUROPOD_WORKER"] = str(RELEASE / "bin" / "neuropod-worker")
    return json.loads(output_of(torchscript_program("out_of_process")))


def torchscript_program(name: str) -> list[str | Path]:
    folder = build_torchscript_program()
    models = BUILD / "models"
    output_of([sys.executable, TORCHSCRIPT / "benchmarks" / "make_models.py", models])
    plugins = (folder / "lib" / "neuropod" / "backends", RELEASE / "lib" / "neuropod" / "backends")
    ENVIRONMENT["NEUROPOD_BACKEND_PATH"] = ":".join(map(str, plugins))
    return [folder / "bin" / name, models]


SUBJECTS: dict[str, Callable[[], dict[str, Any]]] = {
    "core": core,
    "metrics": metrics,
    "linking": linking,
    "python": python,
    "torchscript": torchscript,
    "out_of_process": out_of_process,
}


def show(subject: str, results: dict[str, Any], console: Console) -> None:
    table = Table(title=subject, title_justify="left", show_header=True)
    table.add_column("case")
    table.add_column("figures")
    for case, figures in results.items():
        if isinstance(figures, dict):
            text = "\n".join(f"{key}: {value}" for key, value in figures.items())
        else:
            text = str(figures)
        table.add_row(case, text)
    console.print(table)


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure what docs/performance.md shows.")
    parser.add_argument("--only", nargs="+", choices=list(SUBJECTS), default=list(SUBJECTS))
    arguments = parser.parse_args()
    BUILD.mkdir(parents=True, exist_ok=True)
    console = Console()
    results = {}
    for subject in arguments.only:
        print(f"measuring {subject} …", file=sys.stderr, flush=True)
        results[subject] = SUBJECTS[subject]()
        show(subject, results[subject], console)
    target = BUILD / "results.json"
    target.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    print(f"all numbers: {target}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
