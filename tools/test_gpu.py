#!/usr/bin/env python3
"""Builds the core, the TorchScript plug-in and its device tests, and runs them on this machine's GPU.

    tools/test_gpu.py [--python PYTHON] [--build-dir DIR] [--limit SECONDS] [--core BUNDLE]
    tools/test_gpu.py --pack BUNDLE

Everything is built against the torch of PYTHON (default: the interpreter that runs this), which must
be a CUDA build. No network, no root, no installation: all lies in the build folder (build/gpu). It
needs a C++20 compiler, CMake and the core's libraries; what is missing is named. On a machine without
these libraries give it a bundle that `--pack` wrote on one that has them: the built core and the
headers and libraries of the tests.

Exit codes: 0 all passed, or there is no GPU ("no GPU: 0 run"); 1 a test failed, or building did;
2 there is a GPU, and something is missing to test it.
"""

import argparse
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from gpu_test.build import ROOT, Deadline, build_core, build_tests, pack
from gpu_test.errors import FailedError, NotPossibleError
from gpu_test.machine import check_tools, find_gpu
from gpu_test.running import run_tests


def test_gpu(args: argparse.Namespace) -> int:
    deadline = Deadline(args.limit)
    build = args.build_dir.resolve()
    python = shutil.which(args.python) or args.python
    if args.pack:
        build.mkdir(parents=True, exist_ok=True)
        pack(check_tools(python, True), python, build, args.pack.resolve(), deadline)
        return 0
    torch = find_gpu(python)
    if torch is None:
        print("no GPU: 0 run")
        return 0
    print(
        f"GPU: {', '.join(torch['gpus'])}; torch {torch['torch']}, CUDA {torch['cuda']}", flush=True
    )
    cmake = check_tools(python, with_core=args.core is None)
    build.mkdir(parents=True, exist_ok=True)
    prefix = args.core.resolve() if args.core else build / "prefix"
    if args.core is None:
        build_core(cmake, python, build, prefix, deadline)
    folder = build_tests(cmake, python, torch, build, prefix, deadline)
    count, failed = run_tests(folder, deadline)
    for test in failed:
        print(f"failed: {test}")
    print(f"{count} run on {torch['gpus'][0]}, {len(failed)} failed")
    return 1 if failed or count == 0 else 0


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--python", default=sys.executable, help="the interpreter that has torch")
    parser.add_argument("--build-dir", type=Path, default=ROOT / "build" / "gpu", metavar="DIR")
    parser.add_argument("--limit", type=float, default=300, metavar="SECONDS", help="default: 300")
    parser.add_argument("--core", type=Path, metavar="BUNDLE", help="what --pack wrote elsewhere")
    parser.add_argument("--pack", type=Path, metavar="BUNDLE", help="write a bundle, test nothing")
    try:
        return test_gpu(parser.parse_args(arguments))
    except NotPossibleError as error:
        print(f"test-gpu: {error}", file=sys.stderr)
        return 2
    except FailedError as error:
        print(f"test-gpu: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
