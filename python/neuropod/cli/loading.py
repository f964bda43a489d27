"""Options of every command that loads a model."""

import argparse
from pathlib import Path
from typing import Any

from neuropod.cli.exit_codes import UsageError
from neuropod.errors import InvalidArgumentError
from neuropod.options import device_index


def add_loading_arguments(parser: argparse._ActionsContainer) -> None:
    """Adds `--device` and what is demanded of the package."""
    parser.add_argument(
        "--device",
        type=_device,
        metavar="DEVICE",
        help="cpu, or a GPU's index (default: GPU 0)",
    )
    parser.add_argument(
        "--no-verify", action="store_true", help="don't compare files with the manifest's hashes"
    )
    parser.add_argument(
        "--require-signature",
        action="append",
        metavar="PUBLIC.pem",
        help="load the package only if this key signed it; may be repeated: one must have",
    )
    parser.add_argument(
        "--no-native-code", action="store_true", help="refuse packages with custom operators"
    )


def loading_options(args: argparse.Namespace, framework_threads: int | None) -> dict[str, Any]:
    """What those arguments are for `load_neuropod`. Raises UsageError for a key that isn't there."""
    for key in args.require_signature or ():
        if not Path(key).is_file():
            raise UsageError(f"--require-signature {key}: there is no such file")
    options: dict[str, Any] = {
        "verify_hashes": not args.no_verify,
        "threads": framework_threads,
        "require_signature": args.require_signature,
        "allow_native_code": not args.no_native_code,
    }
    if args.device is not None:
        options["visible_device"] = args.device
    return options


def _device(text: str) -> int | str:
    value = int(text) if text.isdecimal() else text
    try:
        device_index(value)
    except InvalidArgumentError as error:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no device; expected cpu, or a GPU's index from 0"
        ) from error
    return value
