"""`neuropod backends`: the plug-ins there are, and building one."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neuropod.cli.backend_view import find_backend_views
from neuropod.cli.exit_codes import ExitCode
from neuropod.cli.output import print_json, print_table, print_text

if TYPE_CHECKING:
    from argparse import _SubParsersAction


def add_parser(
    commands: "_SubParsersAction[argparse.ArgumentParser]", common: argparse.ArgumentParser
) -> None:
    parser = commands.add_parser(
        "backends",
        help="list plug-ins, or build one",
        description="The plug-ins that run models of each platform.",
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)

    listing = actions.add_parser(
        "list", parents=[common], help="every plug-in found, where, and why one can't be used"
    )
    listing.set_defaults(command=_list)

    install = actions.add_parser(
        "install",
        parents=[common],
        help="build a plug-in against the framework of this environment",
        description="Builds a plug-in from the sources that Neuropod ships, against the framework that "
        "this Python would import. Takes g++ and CMake 3.25 or newer, and a minute or two.",
    )
    install.add_argument("platform", metavar="PLATFORM", help="e.g. the platform an error names")
    install.add_argument("--force", action="store_true", help="build even if nothing changed")
    install.add_argument(
        "--to",
        metavar="DIR",
        type=Path,
        help="folder of plug-ins, instead of the user's data folder",
    )
    install.set_defaults(command=_install)


def _list(args: argparse.Namespace) -> int:
    from neuropod.backend_installer import shipped_platforms

    views, searched = find_backend_views()
    platforms = shipped_platforms()
    if args.json:
        print_json(
            {
                "backends": [view.as_dict() for view in views],
                "searched": searched,
                "installable": platforms,
            }
        )
        return ExitCode.DONE
    rows = [
        (
            view.platform,
            f"{view.framework} {view.version}".strip(),
            "GPU" if view.gpu else "CPU",
            view.problem or "usable",
            f"{view.directory} ({view.source})",
        )
        for view in views
    ]
    if rows:
        print_table("plug-ins", ("platform", "framework", "for", "state", "where"), rows)
    else:
        print_text("no plug-ins found")
    print_text("searched: " + "; ".join(searched))
    usable = {view.platform for view in views if not view.problem}
    for platform in platforms:
        if platform not in usable:
            print_text(f"`neuropod backends install {platform}` adds a plug-in for {platform}")
    return ExitCode.DONE


def _install(args: argparse.Namespace) -> int:
    from neuropod.backend_installer import install_backend

    installed = install_backend(
        args.platform, force=args.force, folder=args.to, report=_report_progress
    )
    result: dict[str, Any] = {
        "platform": installed.platform,
        "framework": installed.framework,
        "framework_version": installed.framework_version,
        "directory": str(installed.directory),
        "built": installed.built,
        "seconds": installed.seconds,
    }
    if args.json:
        print_json(result)
        return ExitCode.DONE
    what = f"plug-in for {installed.platform} ({installed.framework} {installed.framework_version})"
    if installed.built:
        print_text(f"{what} built in {installed.seconds:.0f} s: {installed.directory}")
    else:
        print_text(f"{what} is up to date: {installed.directory}")
    _warn_if_unseen(installed.platform, installed.directory)
    return ExitCode.DONE


def _report_progress(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _warn_if_unseen(platform: str, directory: Path) -> None:
    """Says so when a search would not take what was just installed."""
    views, _ = find_backend_views(platform)
    mine = [view for view in views if Path(view.directory).resolve() == directory.resolve()]
    if not mine:
        _report_progress(
            f"note: {directory.parent} isn't searched; NEUROPOD_BACKEND_PATH={directory.parent} adds it"
        )
    elif mine[0].problem:
        _report_progress(f"note: it can't be used here: {mine[0].problem}")
