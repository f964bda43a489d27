"""`neuropod test`: a package's own test data, run and compared."""

import argparse
import math
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neuropod.cli.argument_types import positive, tolerance
from neuropod.cli.exit_codes import ExitCode, UsageError
from neuropod.cli.loading import add_loading_arguments, loading_options
from neuropod.cli.output import print_json, print_table, print_text
from neuropod.cli.package_access import reading_package

if TYPE_CHECKING:
    from argparse import _SubParsersAction

    from neuropod.executor import Neuropod
    from neuropod.packaging.comparison import OutputComparison

_COLUMNS = ("output", "shape", "differing", "worst at", "expected", "got", "abs diff", "rel diff")
_NUMBERS = ("differing", "expected", "got", "abs diff", "rel diff")


def add_parser(
    commands: "_SubParsersAction[argparse.ArgumentParser]", common: argparse.ArgumentParser
) -> None:
    parser = commands.add_parser(
        "test",
        parents=[common],
        help="run a package on its own test data and compare the outputs",
        description="Loads a package, runs it on the test data inside it and compares what it returns "
        "with what it should: |got - expected| <= atol + rtol * |expected|, NaN equals NaN, strings "
        "must be the same. Exits with 1 if an output differs, with 2 if there is no test data.",
    )
    parser.add_argument("package", metavar="PACKAGE", help="file or folder")
    parser.add_argument(
        "--rtol",
        type=tolerance,
        default=1e-5,
        metavar="R",
        help="relative tolerance (default: 1e-5)",
    )
    parser.add_argument(
        "--atol",
        type=tolerance,
        default=1e-8,
        metavar="A",
        help="absolute tolerance (default: 1e-8)",
    )
    add_loading_arguments(parser)
    parser.add_argument("--threads", type=positive, metavar="N", help="threads of the framework")
    parser.set_defaults(command=_run)


def _run(args: argparse.Namespace) -> int:
    from neuropod import load_neuropod

    options = loading_options(args, args.threads)
    with reading_package():
        model = load_neuropod(args.package, load_model_at_construction=False, **options)
    with model:
        with reading_package():
            data = package_test_data(args.package, model)
            if data is None:
                raise UsageError(
                    f"{args.package} has no test data; packagers write it when they are given "
                    f"test_input_data, `neuropod run` takes inputs from files"
                )
            model.load_model()
        return _test(model, data, args)


def package_test_data(package: str, model: "Neuropod") -> dict[str, Any] | None:
    """`{"test_input": …, "test_output": …}` of the package that `model` was opened from, or None."""
    from neuropod.packaging.test_data import read_test_data

    dtypes = {spec["name"]: spec["dtype"] for spec in [*model.inputs, *model.outputs]}
    return read_test_data(Path(package), dtypes)


def _test(model: "Neuropod", data: dict[str, Any], args: argparse.Namespace) -> int:
    from neuropod.errors import ModelError, NeuropodError
    from neuropod.packaging.comparison import compare_outputs

    start = time.perf_counter()
    try:
        outputs = model.infer(data["test_input"])
    except NeuropodError as error:
        if error.origin != "caller":
            raise
        # The inputs are the package's own, so it isn't the user who got them wrong.
        raise ModelError(f"the package's own test data can't be run: {error.message}") from error
    seconds = time.perf_counter() - start
    expected = data["test_output"]
    comparisons = (
        None if expected is None else compare_outputs(outputs, expected, args.rtol, args.atol)
    )
    passed = all(comparison.problem is None for comparison in comparisons or ())
    if args.json:
        _print_json(model, args, comparisons, passed, seconds)
    else:
        _print(model, args, comparisons, passed, seconds)
    return ExitCode.DONE if passed else ExitCode.MODEL_FAILED


def _print(
    model: "Neuropod",
    args: argparse.Namespace,
    comparisons: "list[OutputComparison] | None",
    passed: bool,
    seconds: float,
) -> None:
    what = f"{model.name} ({args.package})"
    if comparisons is None:
        print_text(
            f"{what} ran in {seconds * 1e3:.3g} ms; its test data has no expected outputs, so nothing "
            "was compared"
        )
        return
    print_table("outputs", _COLUMNS, [_row(comparison) for comparison in comparisons], _NUMBERS)
    for comparison in comparisons:
        if comparison.problem is not None:
            print_text(f"output {comparison.name!r} differs: {comparison.problem}")
    verdict = "passed" if passed else "FAILED"
    print_text(
        f"{what} {verdict} in {seconds * 1e3:.3g} ms (rtol {args.rtol:g}, atol {args.atol:g})"
    )


def _row(comparison: "OutputComparison") -> tuple[str, ...]:
    size = math.prod(comparison.shape)
    differing = f"{comparison.differing:,} of {size:,}"
    worst = comparison.worst
    row = (comparison.name, str(comparison.shape), differing)
    if worst is None:
        return (*row, "", "", "", "", "")
    return (
        *row,
        str(list(worst.index)),
        _shown(worst.expected),
        _shown(worst.actual),
        "" if worst.absolute is None else f"{worst.absolute:.3g}",
        "" if worst.relative is None else f"{worst.relative:.3g}",
    )


def _shown(value: Any) -> str:
    """A number in full; a string in quotes, shortened."""
    if not isinstance(value, str):
        return str(value)
    return repr(value) if len(value) <= 40 else repr(value[:40]) + "…"


def _print_json(
    model: "Neuropod",
    args: argparse.Namespace,
    comparisons: "list[OutputComparison] | None",
    passed: bool,
    seconds: float,
) -> None:
    print_json(
        {
            "path": args.package,
            "name": model.name,
            "passed": passed,
            "compared": comparisons is not None,
            "rtol": args.rtol,
            "atol": args.atol,
            "seconds": seconds,
            "outputs": [_as_dict(comparison) for comparison in comparisons or ()],
        }
    )


def _as_dict(comparison: "OutputComparison") -> dict[str, Any]:
    worst = comparison.worst
    return {
        "name": comparison.name,
        "shape": list(comparison.shape),
        "differing": comparison.differing,
        "problem": comparison.problem,
        "worst": worst
        and {
            "index": list(worst.index),
            "expected": _plain(worst.expected),
            "got": _plain(worst.actual),
            "absolute": worst.absolute,
            "relative": worst.relative,
        },
    }


def _plain(value: Any) -> Any:
    """A NumPy value as Python's."""
    return value.item() if hasattr(value, "item") else value
