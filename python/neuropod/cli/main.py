"""Entry point of the command line."""

import argparse
import os
import sys
import traceback
from collections.abc import Sequence
from typing import NoReturn

import neuropod
from neuropod.backend_installer.errors import BackendInstallError
from neuropod.cli import backends, info, run
from neuropod.cli.exit_codes import ExitCode, UsageError, exit_code_of
from neuropod.errors import NeuropodError


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, without the usage."""

    def error(self, message: str) -> NoReturn:
        self.exit(ExitCode.WRONG_USAGE, f"neuropod: error: {message} (see {self.prog} --help)\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command and returns its exit code."""
    parser = _make_parser()
    args = parser.parse_args(arguments)
    try:
        code: int = args.command(args)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return _fail("interrupted", ExitCode.INTERRUPTED, args.debug)
    except BrokenPipeError:
        # Whoever read the output has enough; Python must not complain again when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.DONE
    except UsageError as error:
        return _fail(str(error), ExitCode.WRONG_USAGE, args.debug)
    except BackendInstallError as error:
        return _fail(error.message, exit_code_of(error.code), args.debug)
    except NeuropodError as error:
        return _fail(_one_line(error.message), exit_code_of(error.code), args.debug)
    except OSError as error:
        return _fail(_os_error_text(error), ExitCode.WRONG_USAGE, args.debug)


def _make_parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="neuropod",
        description="Looks at packaged models, runs them, and installs the plug-ins that run them.",
        epilog="Exit codes: 0 done, 1 the model failed, 2 wrong usage, 3 the package can't be read, "
        "4 no usable backend, 130 interrupted.",
    )
    parser.add_argument("--version", action="version", version=f"neuropod {neuropod.__version__}")
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--json", action="store_true", help="one JSON document on stdout")
    common.add_argument("--debug", action="store_true", help="show the traceback of an error")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for module in (info, run, backends):
        module.add_parser(commands, common)
    return parser


def _one_line(message: str) -> str:
    """A framework's own message may have many lines; --debug shows them as they are."""
    return " ".join(message.split())


def _fail(message: str, code: ExitCode, debug: bool) -> int:
    if debug:
        traceback.print_exc()
    print(f"neuropod: error: {message}", file=sys.stderr)
    return code


def _os_error_text(error: OSError) -> str:
    reason = error.strerror or str(error)
    return f"{error.filename}: {reason}" if error.filename else reason


if __name__ == "__main__":
    sys.exit(main())
