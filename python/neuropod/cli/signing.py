"""`neuropod keygen`, `neuropod sign`, `neuropod verify`: who vouches for a package."""

import argparse
from typing import TYPE_CHECKING

from neuropod.cli.exit_codes import ExitCode, UsageError
from neuropod.cli.output import print_json, print_text
from neuropod.cli.package_access import reading_package

if TYPE_CHECKING:
    from argparse import _SubParsersAction


def add_parser(
    commands: "_SubParsersAction[argparse.ArgumentParser]", common: argparse.ArgumentParser
) -> None:
    keygen = commands.add_parser(
        "keygen",
        parents=[common],
        help="make a pair of keys to sign packages with",
        description="Makes NAME.private.pem, which signs and which only you can read, and "
        "NAME.public.pem, which verifies. Both are Ed25519, as the openssl program reads them.",
    )
    keygen.add_argument("name", metavar="NAME", help="where the two files go, e.g. keys/release")
    keygen.set_defaults(command=_keygen)

    sign = commands.add_parser(
        "sign",
        parents=[common],
        help="sign a package",
        description="Signs a package in place. Its files stay byte for byte; signature.json is "
        "added. Several keys may sign, one after the other.",
    )
    sign.add_argument("package", metavar="PACKAGE", help="file or folder")
    sign.add_argument("--key", required=True, metavar="PRIVATE.pem", help="the key that signs")
    sign.add_argument(
        "--add-manifest",
        action="store_true",
        help="give a package that lists no hashes a manifest of the files it has now",
    )
    sign.set_defaults(command=_sign)

    verify = commands.add_parser(
        "verify",
        parents=[common],
        help="verify a package's signature and every file",
        description="Verifies that one of the keys signed the package, and that no file was "
        "changed, added or removed since. Runs nothing of the package.",
    )
    verify.add_argument("package", metavar="PACKAGE", help="file or folder")
    verify.add_argument(
        "--key",
        required=True,
        action="extend",
        nargs="+",
        metavar="PUBLIC.pem",
        help="keys of which one must have signed",
    )
    verify.set_defaults(command=_verify)


def _keygen(args: argparse.Namespace) -> int:
    from neuropod.signing import create_key_pair

    private, public = f"{args.name}.private.pem", f"{args.name}.public.pem"
    key_id = create_key_pair(private, public)
    if args.json:
        print_json({"key_id": key_id, "private_key": private, "public_key": public})
        return ExitCode.DONE
    print_text(f"key {key_id}")
    print_text(f"signs:    {private} (keep it secret; who has it can sign)")
    print_text(f"verifies: {public} (give it to whoever loads packages)")
    return ExitCode.DONE


def _sign(args: argparse.Namespace) -> int:
    from neuropod.packaging.errors import PackageWriteError
    from neuropod.signing import package_signers, sign_package

    _check_package(args.package)
    try:
        key_id = sign_package(args.package, args.key, add_manifest=args.add_manifest)
    except PackageWriteError as error:
        raise UsageError(error.message) from error
    signers = package_signers(args.package)
    if args.json:
        print_json({"path": args.package, "key_id": key_id, "signers": signers})
        return ExitCode.DONE
    print_text(f"{args.package} is signed by key {key_id}")
    for other in signers:
        if other != key_id:
            print_text(f"and, as it says, by key {other}")
    return ExitCode.DONE


def _verify(args: argparse.Namespace) -> int:
    from neuropod.signing import verify_package

    _check_package(args.package)
    key_id = verify_package(args.package, args.key)
    if args.json:
        print_json({"path": args.package, "key_id": key_id, "verified": True})
    else:
        print_text(f"{args.package} is whole, and signed by key {key_id}")
    return ExitCode.DONE


def _check_package(package: str) -> None:
    """What is missing or unreadable is the package, not a key."""
    from neuropod import _native

    with reading_package():
        _native.list_files(package)
