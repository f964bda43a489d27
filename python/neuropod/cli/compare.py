"""`neuropod compare`: whether two packages give the same answers, and which is faster."""

import argparse
from typing import TYPE_CHECKING, Final

from neuropod.cli.evaluation_options import (
    add_data_arguments,
    add_report_arguments,
    check_packages,
    check_report_paths,
    data_options,
    print_tables,
    progress,
    write_reports,
)
from neuropod.cli.exit_codes import ExitCode
from neuropod.cli.output import print_json, print_text

if TYPE_CHECKING:
    from argparse import _SubParsersAction

    from neuropod.evaluation import ComparisonResult

_TEXT_COLUMNS: Final = ("output", "dtype", "package", "row", "index", "A", "B")


def add_parser(
    commands: "_SubParsersAction[argparse.ArgumentParser]", common: argparse.ArgumentParser
) -> None:
    parser = commands.add_parser(
        "compare",
        parents=[common],
        help="whether two packages give the same answers, and which is faster",
        description="Runs two packages on the same data, taking turns, and compares every output. "
        "Floating numbers agree if |A - B| <= atol + rtol * |A|, everything else if it's equal; NaN "
        "agrees with NaN only. A row disagrees if one of its elements does. Exits with 1 if a larger "
        "share of rows disagrees than --max-disagreement allows.",
    )
    parser.add_argument("a", metavar="PACKAGE", help="A: file or folder")
    parser.add_argument("b", metavar="PACKAGE", help="B: file or folder")
    agreement = parser.add_argument_group("agreement")
    agreement.add_argument(
        "--rtol", type=float, default=1e-4, metavar="R", help="relative tolerance (default: 1e-4)"
    )
    agreement.add_argument(
        "--atol", type=float, default=1e-5, metavar="A", help="absolute tolerance (default: 1e-5)"
    )
    agreement.add_argument(
        "--max-disagreement",
        type=float,
        default=0.0,
        metavar="SHARE",
        help="of rows of an output that may disagree, 0 to 1 (default: 0)",
    )
    add_data_arguments(parser)
    add_report_arguments(parser)
    parser.set_defaults(command=_run)


def _run(args: argparse.Namespace) -> int:
    from neuropod.evaluation import compare

    check_report_paths(args)
    check_packages([args.a, args.b])
    result = compare(
        args.a,
        args.b,
        rtol=args.rtol,
        atol=args.atol,
        max_disagreement=args.max_disagreement,
        progress=progress(args),
        **data_options(args),
    )
    document = result.to_dict()
    write_reports(args, document, result.to_html() if args.html else None)
    if args.json:
        print_json(document)
    else:
        _print(result, args)
    return ExitCode.DONE if result.agrees else ExitCode.MODEL_FAILED


def _print(result: "ComparisonResult", args: argparse.Namespace) -> None:
    from neuropod.evaluation.report.table import comparison_tables
    from neuropod.evaluation.report.units import percent

    print_tables(comparison_tables(result), _TEXT_COLUMNS)
    for output in result.outputs:
        for which, count in (("A", output.nan_only_a), ("B", output.nan_only_b)):
            if count:
                print_text(f"output {output.name!r}: {count} NaN in {which} only")
    print_text(
        f"{'they agree' if result.agrees else 'they DISAGREE'} (rtol {args.rtol:g}, atol {args.atol:g}, "
        f"at most {percent(args.max_disagreement)} of rows may disagree); "
        f"median latency of A / B: {result.speed_ratio:.2f}"
    )
    for path in (args.html, args.json_file):
        if path is not None:
            print_text(f"saved: {path}")
