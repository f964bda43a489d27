"""`neuropod api`: problem APIs shown, checked and compared."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neuropod.cli.exit_codes import ExitCode
from neuropod.cli.output import print_json, print_table, print_text
from neuropod.cli.package_access import reading_package
from neuropod.cli.writable import written_whole
from neuropod.errors import NeuropodError
from neuropod.problem_api import ApiDifference, ProblemAPI, shape_text

if TYPE_CHECKING:
    from argparse import _SubParsersAction

_FILE_OR_PACKAGE = "a problem-API file, or a package"


def add_parser(
    commands: "_SubParsersAction[argparse.ArgumentParser]", common: argparse.ArgumentParser
) -> None:
    parser = commands.add_parser(
        "api",
        help="show a problem API, check packages against one, or compare two",
        description="A problem API is what the models of one problem take and return: the specs of a "
        "package, or a file that holds nothing else.",
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)

    show = actions.add_parser(
        "show", parents=[common], help="the tensors of a problem-API file or a package"
    )
    show.add_argument("source", metavar="FILE|PACKAGE", help=_FILE_OR_PACKAGE)
    show.add_argument(
        "-o", "--output", metavar="FILE", type=Path, help="write the problem-API file instead"
    )
    show.set_defaults(command=_show)

    check = actions.add_parser(
        "check",
        parents=[common],
        help="say whether packages fulfil a problem API, by exit code too",
        description="Says of each package whether a program written for the problem API can use it, and "
        "every difference. Exit code 1: one can't be used.",
    )
    check.add_argument("source", metavar="FILE|PACKAGE", help=_FILE_OR_PACKAGE)
    check.add_argument("packages", metavar="PACKAGE", nargs="+", help="files or folders")
    check.set_defaults(command=_check)

    diff = actions.add_parser(
        "diff",
        parents=[common],
        help="how one problem API differs from another",
        description="How NEW differs from OLD, and whether one can replace the other.",
    )
    diff.add_argument("old", metavar="OLD", help=_FILE_OR_PACKAGE)
    diff.add_argument("new", metavar="NEW", help=_FILE_OR_PACKAGE)
    diff.set_defaults(command=_diff)


def read_api(source: str) -> ProblemAPI:
    """The problem API in a file, or of a package: a folder, or a file that begins as zip files do."""
    path = Path(source)
    if path.is_dir() or _begins_as_zip(path):
        with reading_package():
            return ProblemAPI.from_package(source)
    return ProblemAPI.from_file(source)


def _begins_as_zip(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(2) == b"PK"


def _show(args: argparse.Namespace) -> int:
    api = read_api(args.source)
    if args.output is not None:
        with written_whole("-o", args.output) as temporary:
            api.to_file(temporary)
        if not args.json:
            print_text(f"written: {args.output}")
            return ExitCode.DONE
    if args.json:
        print_json({"inputs": api.inputs, "outputs": api.outputs})
        return ExitCode.DONE
    for title, specs in (("inputs", api.inputs), ("outputs", api.outputs)):
        if specs:
            print_table(title, ("name", "dtype", "shape"), [_row(spec) for spec in specs])
        else:
            print_text(f"no {title}")
    return ExitCode.DONE


def _row(spec: dict[str, Any]) -> tuple[str, str, str]:
    name = spec["name"] + (" (optional)" if spec.get("optional") else "")
    return name, spec["dtype"], shape_text(spec["shape"])


def _check(args: argparse.Namespace) -> int:
    required = read_api(args.source)
    results = [_check_package(required, package) for package in args.packages]
    if args.json:
        print_json({"problem_api": args.source, "packages": results})
    else:
        for result in results:
            _print_check(result, args.source)
    if any(result["error"] for result in results):
        return ExitCode.PACKAGE_UNREADABLE
    return ExitCode.DONE if all(result["fulfils"] for result in results) else ExitCode.MODEL_FAILED


def _check_package(required: ProblemAPI, package: str) -> dict[str, Any]:
    """What is said of one package; one that can't be read doesn't keep the others from being checked."""
    try:
        with reading_package():
            differences = required.differences(ProblemAPI.from_package(package))
    except NeuropodError as error:
        return {"package": package, "fulfils": False, "differences": [], "error": error.message}
    return {
        "package": package,
        "fulfils": not any(difference.breaking for difference in differences),
        "differences": _as_dicts(differences),
        "error": None,
    }


def _print_check(result: dict[str, Any], source: str) -> None:
    package = result["package"]
    if result["error"]:
        print_text(f"{package}: can't be read: {result['error']}")
        return
    verdict = "fulfils" if result["fulfils"] else "DOES NOT fulfil"
    print_text(f"{package}: {verdict} {source}")
    _print_differences(result["differences"])


def _diff(args: argparse.Namespace) -> int:
    old, new = read_api(args.old), read_api(args.new)
    differences = old.differences(new)
    forwards, backwards = old.is_fulfilled_by(new), new.is_fulfilled_by(old)
    if args.json:
        print_json(
            {
                "old": args.old,
                "new": args.new,
                "differences": _as_dicts(differences),
                "new_can_replace_old": forwards,
                "old_can_replace_new": backwards,
            }
        )
        return ExitCode.DONE
    if not differences:
        print_text(f"{args.new} and {args.old} have the same problem API")
        return ExitCode.DONE
    _print_differences(_as_dicts(differences))
    print_text(f"{args.new} {_can(forwards)} replace {args.old}")
    print_text(f"{args.old} {_can(backwards)} replace {args.new}")
    return ExitCode.DONE


def _can(possible: bool) -> str:
    return "can" if possible else "CANNOT"


def _as_dicts(differences: list[ApiDifference]) -> list[dict[str, Any]]:
    return [
        {
            "side": difference.side,
            "tensor": difference.tensor,
            "text": difference.text,
            "breaking": difference.breaking,
        }
        for difference in differences
    ]


def _print_differences(differences: list[dict[str, Any]]) -> None:
    for difference in differences:
        kind = "breaks" if difference["breaking"] else "fine"
        print_text(f"  {kind + ':':8s}{difference['text']}")
