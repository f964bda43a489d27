"""`neuropod bench`: how fast a package is."""

import argparse
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neuropod.cli.argument_types import natural, positive, positives, seconds
from neuropod.cli.bench_view import as_dict, print_results
from neuropod.cli.exit_codes import ExitCode, UsageError
from neuropod.cli.interrupts import leave_at_once
from neuropod.cli.loading import add_loading_arguments, loading_options
from neuropod.cli.output import flush_output, print_json
from neuropod.cli.package_access import reading_package
from neuropod.errors import NeuropodError

if TYPE_CHECKING:
    from argparse import _SubParsersAction

    from neuropod.cli.measurement import Measurement
    from neuropod.executor import Neuropod


@dataclass
class BenchResult:
    """What was measured of one package."""

    path: str
    name: str
    platform: str
    inputs_from: str
    input_shapes: dict[str, tuple[int, ...]]
    load_seconds: float
    first_call_seconds: float
    runs: "list[Measurement]" = field(default_factory=list)


def add_parser(
    commands: "_SubParsersAction[argparse.ArgumentParser]", common: argparse.ArgumentParser
) -> None:
    parser = commands.add_parser(
        "bench",
        parents=[common],
        help="measure latency and throughput of packages",
        description="Calls each package for a while and shows the latency's percentiles and the "
        "throughput. Inputs are the package's test data; -i takes them from files; without test data, or "
        "with --size or --random, they are made up from the specs. Ctrl-C shows what was measured so far.",
    )
    parser.add_argument("packages", metavar="PACKAGE", nargs="+", help="files or folders")
    inputs = parser.add_argument_group("inputs")
    inputs.add_argument(
        "-i",
        "--input",
        action="append",
        default=[],
        metavar="[NAME=]FILE",
        help="as `neuropod run`",
    )
    inputs.add_argument(
        "--resize", action="store_true", help="scale and convert pictures, as `neuropod run`"
    )
    inputs.add_argument("--random", action="store_true", help="make inputs up from the specs")
    inputs.add_argument(
        "--size",
        action="append",
        default=[],
        metavar="NAME=N",
        help="size of a symbol (batch=8) or of an axis without one (image[1]=224); otherwise 1",
    )
    inputs.add_argument("--seed", type=natural, default=0, metavar="N", help="of random inputs")
    load = parser.add_argument_group("load")
    load.add_argument(
        "--threads",
        type=positives,
        default=[1],
        metavar="N[,N]",
        help="calling threads, one measurement for each number (default: 1)",
    )
    load.add_argument(
        "--seconds", type=seconds, default=3.0, metavar="S", help="of each measurement (default: 3)"
    )
    load.add_argument(
        "--calls", type=positive, metavar="N", help="of each thread, instead of --seconds"
    )
    load.add_argument(
        "--warm-up",
        type=natural,
        metavar="N",
        help="calls before (default: 10, at most half a second)",
    )
    load.add_argument(
        "--framework-threads", type=positive, metavar="N", help="threads of the framework"
    )
    add_loading_arguments(load)
    parser.add_argument(
        "--plot", type=Path, metavar="FILE", help="draw latency and throughput: .png or .svg"
    )
    parser.set_defaults(command=_run)


def _run(args: argparse.Namespace) -> int:
    _check(args)
    results: list[BenchResult] = []
    try:
        for package in args.packages:
            _bench(package, args, results)
    except (KeyboardInterrupt, NeuropodError, UsageError) as error:
        # What was measured isn't lost.
        _show([result for result in results if result.runs], args, complete=False)
        if isinstance(error, KeyboardInterrupt):
            _leave_if_stuck(results)
        raise
    _show(results, args, complete=True)
    return ExitCode.DONE


def _show(results: list[BenchResult], args: argparse.Namespace, complete: bool) -> None:
    if not any(run.calls for result in results for run in result.runs):
        return
    if args.json:
        print_json({"packages": [as_dict(result) for result in results], "complete": complete})
    else:
        print_results(results)
    if args.plot is not None:
        from neuropod.cli.bench_plot import draw

        draw(results, args.plot)


def _check(args: argparse.Namespace) -> None:
    """What can be known to be wrong before anything is measured."""
    if args.input and (args.random or args.size):
        raise UsageError("-i takes inputs from files, --random and --size make them up; give one")
    if args.plot is not None:
        from neuropod.cli.bench_plot import check_plot_path

        check_plot_path(args.plot)


def _bench(package: str, args: argparse.Namespace, results: list[BenchResult]) -> None:
    """Measures one package and adds to `results` what there is, also if it is interrupted."""
    import time

    from neuropod import load_neuropod
    from neuropod.cli.measurement import Load, measure

    options = loading_options(args, args.framework_threads)
    with reading_package():
        model = load_neuropod(package, load_model_at_construction=False, **options)
    with model:
        inputs_from, inputs = _inputs(package, model, args)
        start = time.perf_counter()
        with reading_package():
            model.load_model()
        loaded = time.perf_counter()
        model.infer(inputs)
        result = BenchResult(
            package,
            model.name,
            model.platform,
            inputs_from,
            _shapes(inputs),
            loaded - start,
            time.perf_counter() - loaded,
        )
        results.append(result)
        for threads in args.threads:
            load = Load(threads, args.seconds, args.calls, args.warm_up)
            result.runs.append(measure(model, inputs, load))
            if not result.runs[-1].complete:
                raise KeyboardInterrupt


def _inputs(
    package: str, model: "Neuropod", args: argparse.Namespace
) -> tuple[str, dict[str, Any]]:
    """Where the inputs come from, for people, and the inputs."""
    from neuropod.cli.inputs import read_inputs
    from neuropod.cli.random_inputs import parse_sizes, random_inputs
    from neuropod.cli.test import package_test_data

    if args.input:
        return "files", read_inputs(args.input, model.inputs, args.resize)
    if not args.random and not args.size:
        with reading_package():
            data = package_test_data(package, model)
        if data is not None:
            return "test data", data["test_input"]
    sizes = parse_sizes(args.size, model.inputs)
    return "random", random_inputs(model.inputs, sizes, args.seed)


def _shapes(inputs: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    import numpy as np

    return {name: np.shape(value) for name, value in inputs.items()}


def _leave_if_stuck(results: list[BenchResult]) -> None:
    """Python would wait for a call that doesn't end before it ends itself."""
    if any(run.has_stuck_calls for result in results for run in result.runs):
        import sys

        flush_output()
        print("neuropod: error: interrupted", file=sys.stderr, flush=True)
        leave_at_once(ExitCode.INTERRUPTED)
