"""Arguments that `neuropod evaluate` and `neuropod compare` share."""

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neuropod.cli.argument_types import natural, positive
from neuropod.cli.exit_codes import UsageError
from neuropod.cli.loading import add_loading_arguments, loading_options
from neuropod.cli.output import json_text, print_table
from neuropod.cli.package_access import reading_package
from neuropod.cli.writable import written_whole

if TYPE_CHECKING:
    from neuropod.evaluation import Progress
    from neuropod.evaluation.report.table import Table


def add_data_arguments(parser: argparse.ArgumentParser) -> None:
    """What the data are and how packages are run on them."""
    data = parser.add_argument_group("data")
    data.add_argument(
        "--data",
        required=True,
        metavar="PATH",
        help=".npz, .csv, .tsv, .parquet, or a folder of images; columns named as inputs are inputs",
    )
    data.add_argument("--limit", type=positive, metavar="N", help="use the first N rows only")
    data.add_argument(
        "--resize", action="store_true", help="scale images to the size that the model takes"
    )
    data.add_argument(
        "--pixel-range",
        type=_pixel_range,
        metavar="LOW,HIGH",
        help="what pixel values 0 and 255 become (default: they stay)",
    )
    running = parser.add_argument_group("running")
    running.add_argument(
        "--batch-size",
        type=positive,
        default=32,
        metavar="N",
        help="rows in a call, where the problem API has a batch symbol (default: 32)",
    )
    running.add_argument("--threads", type=positive, metavar="N", help="threads of the framework")
    running.add_argument(
        "--seed", type=natural, default=0, metavar="N", help="of everything random (default: 0)"
    )
    add_loading_arguments(running)


def add_report_arguments(parser: argparse.ArgumentParser) -> None:
    """Where results go besides the terminal."""
    report = parser.add_argument_group("report")
    report.add_argument("--html", type=Path, metavar="FILE", help="one page with tables and plots")
    report.add_argument(
        "--json-file", type=Path, metavar="FILE", help="what --json prints, to a file"
    )


def data_options(args: argparse.Namespace) -> dict[str, Any]:
    """Those arguments as `evaluate` and `compare` take them."""
    return {
        "data": args.data,
        "limit": args.limit,
        "resize": args.resize,
        "pixel_range": args.pixel_range,
        "batch_size": args.batch_size,
        "seed": args.seed,
        "load_options": loading_options(args, args.threads),
    }


def check_packages(packages: Sequence[str]) -> None:
    """Raises what reading a package's configuration raises, as an error of the package."""
    from neuropod.problem_api import ProblemAPI

    for package in packages:
        with reading_package():
            ProblemAPI.from_package(package)


def check_report_paths(args: argparse.Namespace) -> None:
    """Raises UsageError if a report couldn't be written, before anything runs."""
    for option, path in (("--html", args.html), ("--json-file", args.json_file)):
        if path is None:
            continue
        if not path.parent.is_dir():
            raise UsageError(f"{option} {path}: the folder {path.parent} does not exist")
        if path.is_dir():
            raise UsageError(f"{option} {path} is a folder")


def progress(args: argparse.Namespace) -> "Progress":
    """A bar on stderr, if somebody looks at it."""
    from neuropod.evaluation import Progress

    return Progress(sys.stderr.isatty() and not args.json)


def write_reports(args: argparse.Namespace, document: Mapping[str, Any], html: str | None) -> None:
    """Writes the files that were asked for, each whole or not at all."""
    if args.json_file is not None:
        _write("--json-file", args.json_file, json_text(document) + "\n")
    if args.html is not None and html is not None:
        _write("--html", args.html, html)


def print_tables(tables: "Sequence[Table]", text_columns: Sequence[str]) -> None:
    """Tables on stdout; columns that hold no text are aligned to the right."""
    for table in tables:
        numbers = [column for column in table.columns if column not in text_columns]
        print_table(table.title, table.columns, table.rows, numbers)


def _write(option: str, path: Path, text: str) -> None:
    with written_whole(option, path) as temporary:
        # A file name may hold bytes that are no UTF-8, which Python keeps as surrogates.
        temporary.write_text(text, encoding="utf-8", errors="backslashreplace")


def _pixel_range(text: str) -> tuple[float, float]:
    low, comma, high = text.partition(",")
    try:
        if not comma:
            raise ValueError
        return float(low), float(high)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is expected as LOW,HIGH, e.g. 0,1") from error
