"""`neuropod backends`: the plug-ins there are, building one, removing one."""

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neuropod.cli.backend_view import BackendView, find_backend_views, install_hint, serving_view
from neuropod.cli.exit_codes import ExitCode
from neuropod.cli.output import print_json, print_table, print_text
from neuropod.cli.package_access import reading_package

if TYPE_CHECKING:
    from argparse import _SubParsersAction


def add_parser(
    commands: "_SubParsersAction[argparse.ArgumentParser]", common: argparse.ArgumentParser
) -> None:
    parser = commands.add_parser(
        "backends",
        help="list, build or remove plug-ins",
        description="The plug-ins that run models of each platform.",
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)

    listing = actions.add_parser(
        "list", parents=[common], help="every plug-in found, where, and why one can't be used"
    )
    listing.add_argument(
        "--for",
        dest="package",
        metavar="PACKAGE",
        help="only those for this package, with the one that would serve it marked",
    )
    listing.set_defaults(command=_list)
    _add_install(actions, common)
    _add_remove(actions, common)


def _add_install(
    actions: "_SubParsersAction[argparse.ArgumentParser]", common: argparse.ArgumentParser
) -> None:
    install = actions.add_parser(
        "install",
        parents=[common],
        help="build a plug-in: against this environment's framework, or another version of it",
        description="Builds a plug-in from the sources that Neuropod ships, against the framework that "
        "this Python would import, or another one. Takes g++ and CMake 3.25 or newer, and a minute or "
        "two.",
    )
    install.add_argument("platform", metavar="PLATFORM", help="e.g. the platform an error names")
    which = install.add_mutually_exclusive_group()
    which.add_argument(
        "--framework-version",
        metavar="X",
        help="this version of the framework, which pip puts into a private environment",
    )
    which.add_argument(
        "--from-prefix",
        metavar="DIR",
        type=Path,
        help="the framework that lies in DIR: an unpacked archive, or packages unpacked by dpkg -x",
    )
    install.add_argument("--force", action="store_true", help="build even if nothing changed")
    _add_folder(install, "--to")
    install.set_defaults(command=_install)


def _add_remove(
    actions: "_SubParsersAction[argparse.ArgumentParser]", common: argparse.ArgumentParser
) -> None:
    remove = actions.add_parser(
        "remove",
        parents=[common],
        help="remove a plug-in that `install` built, and its private environment",
    )
    remove.add_argument("name", metavar="NAME|PLATFORM", help="its folder's name, or its platform")
    remove.add_argument(
        "--framework-version", metavar="X", help="which one, where a platform has several"
    )
    _add_folder(remove, "--from")
    remove.set_defaults(command=_remove)


def _add_folder(parser: argparse.ArgumentParser, option: str) -> None:
    parser.add_argument(
        option,
        dest="folder",
        metavar="DIR",
        type=Path,
        help="folder of plug-ins, instead of the user's data folder",
    )


def _list(args: argparse.Namespace) -> int:
    from neuropod.backend_installer import shipped_platforms

    config = _read_config(args.package)
    wanted = (config["platform"], config["platform_version_semver"]) if config else ("", "*")
    views, searched = find_backend_views(*wanted)
    serving = serving_view(views) if config else None
    platforms = shipped_platforms()
    if args.json:
        print_json(
            {
                "backends": [
                    view.as_dict() | ({"serves": view is serving} if config else {})
                    for view in views
                ],
                "searched": searched,
                "installable": platforms,
            }
        )
        return ExitCode.DONE
    _print_list(views, serving, config, searched, platforms)
    return ExitCode.DONE


def _read_config(package: str | None) -> dict[str, Any] | None:
    from neuropod import _native

    if package is None:
        return None
    with reading_package():
        config: dict[str, Any] = _native.read_config(package)
    return config


def _print_list(
    views: list[BackendView],
    serving: BackendView | None,
    config: dict[str, Any] | None,
    searched: list[str],
    platforms: list[str],
) -> None:
    rows = [
        (
            view.platform,
            f"{view.framework} {view.version}".strip(),
            ("GPU" if view.gpu else "CPU") if view.framework else "",
            "serves it" if view is serving else "not usable" if view.problem else "usable",
            f"{view.directory} ({view.source})",
        )
        for view in views
    ]
    title = "plug-ins"
    if config:
        title = (
            f"plug-ins for {config['name']} ({config['platform']} "
            f"{config['platform_version_semver']})"
        )
    if rows:
        print_table(title, ("platform", "framework", "for", "state", "where"), rows)
    else:
        print_text(f"no {title} found" if config else "no plug-ins found")
    for view in views:
        if view.problem:
            # What has no framework is a manifest that can't be read; that message names it.
            where = f"{view.framework} {view.version} in {view.directory}: "
            print_text(f"not usable: {where if view.framework else ''}{view.problem}")
    print_text("searched: " + "; ".join(searched))
    usable = {view.platform for view in views if not view.problem}
    for platform in platforms:
        wanted = config is None or config["platform"] == platform
        if wanted and platform not in usable:
            wanted_range = config["platform_version_semver"] if config else "*"
            print_text(f"{install_hint(platform, wanted_range)} adds a plug-in for {platform}")


def _install(args: argparse.Namespace) -> int:
    from neuropod.backend_installer import install_backend

    with _showing_log_first():
        installed = install_backend(
            args.platform,
            framework_version=args.framework_version,
            prefix=args.from_prefix,
            force=args.force,
            folder=args.folder,
            report=_report_progress,
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


def _remove(args: argparse.Namespace) -> int:
    from neuropod.backend_installer import remove_backend

    removed = remove_backend(
        args.name,
        framework_version=args.framework_version,
        folder=args.folder,
        report=_report_progress,
    )
    environment = removed.environment
    if args.json:
        print_json(
            {
                "directory": str(removed.directory),
                "environment": str(environment) if environment else None,
            }
        )
        return ExitCode.DONE
    print_text(f"removed {removed.directory}")
    if environment:
        print_text(f"removed {environment}, which only that plug-in used")
    return ExitCode.DONE


@contextmanager
def _showing_log_first() -> Iterator[None]:
    """The end of a failed build's log as it is, so that the error after it is one line."""
    from neuropod.backend_installer import BackendInstallError

    try:
        yield
    except BackendInstallError as error:
        headline, _, end_of_log = error.message.partition("\n")
        if not end_of_log:
            raise
        _report_progress(end_of_log)
        raise type(error)(headline.removesuffix("; it ends:")) from error


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
