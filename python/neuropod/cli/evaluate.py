"""`neuropod evaluate`: metrics, speed and memory of packages on the same data."""

import argparse
import math
import sys
from pathlib import Path
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
from neuropod.cli.exit_codes import ExitCode, UsageError
from neuropod.cli.output import print_json, print_text, printable

if TYPE_CHECKING:
    from argparse import _SubParsersAction

    from neuropod.evaluation import EvaluationResult

_TEXT_COLUMNS: Final = ("rank", "package", "platform", "metric", "verdict")


def add_parser(
    commands: "_SubParsersAction[argparse.ArgumentParser]", common: argparse.ArgumentParser
) -> None:
    parser = commands.add_parser(
        "evaluate",
        parents=[common],
        help="metrics, speed and memory of packages on the same data",
        description="Runs packages of one problem API on the same data, each in a process of its own, and "
        "ranks them by the first metric. Exits with 1 if a package fails or, with --baseline, drops too "
        "far.",
        epilog="Metrics: accuracy, top5 (any k), log_loss, roc_auc, mae, mse, r2, coco_ap, coco_ap50, or "
        "FILE.py:FUNCTION. METRIC:OUTPUT or METRIC:output=NAME,target=NAME says of what, where it isn't "
        "clear.",
    )
    parser.add_argument("packages", nargs="+", metavar="PACKAGE", help="file or folder")
    metrics = parser.add_argument_group("metrics")
    metrics.add_argument(
        "-m",
        "--metric",
        action="append",
        default=[],
        metavar="METRIC",
        help="may be repeated; the first ranks; without one, only speed and memory are measured",
    )
    metrics.add_argument("--target", metavar="NAME", help="the column that holds what is right")
    metrics.add_argument(
        "--classes",
        metavar="FILE|NAMES",
        help="names of the classes in the model's order: a file with one a line, or a,b,c",
    )
    metrics.add_argument(
        "--labels",
        type=Path,
        metavar="FILE",
        help="of a folder of images: a .csv with the column 'file', or COCO's .json "
        "(default: labels.csv or annotations.json in it, else its subfolders are the classes)",
    )
    metrics.add_argument(
        "--bootstrap",
        type=int,
        default=1000,
        metavar="N",
        help="resamples for the 95 %% intervals; 0 for none (default: 1000)",
    )
    gate = parser.add_argument_group("gate")
    gate.add_argument("--baseline", metavar="PACKAGE", help="compare with this package, too")
    gate.add_argument(
        "--max-drop",
        action="append",
        default=[],
        metavar="[METRIC=]DROP",
        help="how much worse than the baseline a metric may be, in its own unit (default: 0)",
    )
    add_data_arguments(parser)
    add_report_arguments(parser)
    parser.set_defaults(command=_run)


def _run(args: argparse.Namespace) -> int:
    from neuropod.evaluation import evaluate

    check_report_paths(args)
    max_drop = _max_drop(args)
    check_packages([*args.packages, *([args.baseline] if args.baseline else [])])
    result = evaluate(
        args.packages,
        metrics=args.metric,
        target=args.target,
        classes=_classes(args.classes),
        labels=args.labels,
        resamples=args.bootstrap,
        baseline=args.baseline,
        max_drop=max_drop,
        progress=progress(args),
        **data_options(args),
    )
    document = result.to_dict()
    write_reports(args, document, result.to_html() if args.html else None)
    if args.json:
        print_json(document)
    else:
        _print(result, args)
    for package in result.packages:
        if package.error is not None:
            _complain(f"{package.name} failed: {' '.join(package.error.split())}")
    return ExitCode.DONE if result.succeeded else ExitCode.MODEL_FAILED


def _print(result: "EvaluationResult", args: argparse.Namespace) -> None:
    from neuropod.evaluation.report.table import evaluation_tables

    print_tables(evaluation_tables(result), _TEXT_COLUMNS)
    for package in result.packages:
        for note in package.notes:
            print_text(f"{package.name}: {note}")
    if result.gate is not None:
        for drop in result.gate.drops:
            if not drop.passed:
                print_text(f"FAILED {drop.text}")
    for path in (args.html, args.json_file):
        if path is not None:
            print_text(f"saved: {path}")


def _max_drop(args: argparse.Namespace) -> float | dict[str, float]:
    """One drop for all metrics, or by metric."""
    if args.max_drop and args.baseline is None:
        raise UsageError("--max-drop goes with --baseline PACKAGE")
    by_metric: dict[str, float] = {}
    for text in args.max_drop:
        metric, equals, number = text.rpartition("=")
        try:
            drop = float(number)
        except ValueError:
            drop = math.nan
        if not math.isfinite(drop) or drop < 0:
            raise UsageError(f"--max-drop {text}: expected a number from 0, or METRIC=NUMBER")
        if not equals and len(args.max_drop) == 1:
            return drop
        if not equals:
            raise UsageError(f"--max-drop {text}: of several, each is expected as METRIC=NUMBER")
        by_metric[metric] = drop
    return by_metric


def _classes(text: str | None) -> list[str] | None:
    if text is None:
        return None
    path = Path(text)
    if path.is_file():
        try:
            lines = path.read_text(encoding="utf-8-sig").splitlines()
        except UnicodeDecodeError as error:
            raise UsageError(f"--classes {path} is not UTF-8: {error.reason}") from error
        names = [line.strip() for line in lines if line.strip()]
    else:
        if "," not in text and ("/" in text or path.suffix):
            raise UsageError(f"--classes {text}: there is no such file")
        names = [name.strip() for name in text.split(",")]
    twice = {name for name in names if names.count(name) > 1}
    if twice or not names or "" in names:
        found = f"{sorted(twice)[0]!r} is there twice" if twice else "an empty name"
        raise UsageError(f"--classes {text}: expected different names, {found}")
    return names


def _complain(text: str) -> None:
    print(f"neuropod: {printable(text)}", file=sys.stderr)
