"""`neuropod info`: what a package says, and what would run it."""

import argparse
from typing import TYPE_CHECKING, Any

from neuropod.cli.backend_view import find_backend_views, install_hint, serving_view
from neuropod.cli.exit_codes import ExitCode
from neuropod.cli.output import print_json, print_table, print_text
from neuropod.cli.package_access import reading_package
from neuropod.problem_api import shape_text, spec_dict

if TYPE_CHECKING:
    from argparse import _SubParsersAction

_DESCRIPTIVE = ("version", "description", "author", "license", "created")


def add_parser(
    commands: "_SubParsersAction[argparse.ArgumentParser]", common: argparse.ArgumentParser
) -> None:
    parser = commands.add_parser(
        "info",
        parents=[common],
        help="what a package says: specs, hashes, and which backend would serve it",
        description="Shows a package without running any of its code.",
    )
    parser.add_argument("package", metavar="PACKAGE", help="file or folder")
    parser.set_defaults(command=_run)


def _run(args: argparse.Namespace) -> int:
    with reading_package():
        details = _details(args.package)
    if args.json:
        print_json(details)
    else:
        _print(details)
    return ExitCode.DONE


def _details(package: str) -> dict[str, Any]:
    from neuropod import _native

    config = _native.read_config(package)
    files = [
        {"name": name, "bytes": size, "sha256": _native.hash_file(package, name)}
        for name, size in _native.list_files(package)
    ]
    views, searched = find_backend_views(config["platform"], config["platform_version_semver"])
    serving = serving_view(views)
    return {
        "path": package,
        "name": config["name"],
        "platform": config["platform"],
        "platform_version_semver": config["platform_version_semver"],
        "format_version": config["format_version"],
        "stateful": config["stateful"],
        **{key: config[key] for key in _DESCRIPTIVE if config[key]},
        "inputs": [
            {
                **spec_dict(spec),
                "device": config["input_tensor_device"].get(spec.name, "GPU"),
            }
            for spec in config["inputs"]
        ],
        "outputs": [spec_dict(spec) for spec in config["outputs"]],
        "custom_ops": config["custom_ops"],
        "files": files,
        "manifest": _manifest_state(package, files),
        "signers": _native.list_signers(package),
        "backend": serving.as_dict() if serving else None,
        "other_backends": [view.as_dict() for view in views if view is not serving],
        "searched": searched,
    }


def _manifest_state(package: str, files: list[dict[str, Any]]) -> str:
    """`"absent"`, `"verified"`, or what differs."""
    from neuropod import _native
    from neuropod.errors import CorruptPackageError, InvalidPackageError

    if not any(file["name"] == "manifest.json" for file in files):
        return "absent"
    try:
        _native.verify_manifest(package)
    except (CorruptPackageError, InvalidPackageError) as error:
        return error.message
    return "verified"


def _print(details: dict[str, Any]) -> None:
    print_text(f"{details['name']} ({details['path']})")
    print_text(f"platform: {details['platform']} {details['platform_version_semver']}")
    for key in _DESCRIPTIVE:
        if key in details:
            print_text(f"{key}: {details[key]}")
    rules = "today's" if details["format_version"] else "those of packages without format_version"
    print_text(f"rules for calls: {rules}")
    if details["stateful"]:
        print_text("stateful: calls run one after the other")
    print_text()
    columns = ("name", "dtype", "shape", "device")
    print_table("inputs", columns, [_spec_row(spec) for spec in details["inputs"]])
    print_table("outputs", columns[:3], [_spec_row(spec)[:3] for spec in details["outputs"]])
    rows = [(file["name"], f"{file['bytes']:,}", file["sha256"]) for file in details["files"]]
    print_table("files", ("name", "bytes", "sha256"), rows)
    print_text(f"manifest: {details['manifest']}")
    for signer in details["signers"]:
        print_text(f"signed, as it says, by key {signer} (`neuropod verify` checks that)")
    _print_backends(details)


def _spec_row(spec: dict[str, Any]) -> tuple[str, str, str, str]:
    name = spec["name"] + (" (optional)" if spec.get("optional") else "")
    return (name, spec["dtype"], shape_text(spec["shape"]), spec.get("device", ""))


def _print_backends(details: dict[str, Any]) -> None:
    backend = details["backend"]
    if backend is None:
        hint = install_hint(details["platform"], details["platform_version_semver"])
        print_text(f"backend: none serves this package; {hint} adds one")
    else:
        print_text(
            f"backend: {backend['framework']} {backend['framework_version']} "
            f"in {backend['directory']} ({backend['source']})"
        )
    for other in details["other_backends"]:
        problem = other["problem"] or "usable, but not the best"
        print_text(f"not used: {other['directory']}: {problem}")
    if backend is None:
        print_text(f"searched: {'; '.join(details['searched'])}")
