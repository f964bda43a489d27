"""Entry point of the command line."""

import argparse
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import NoReturn

import neuropod
from neuropod.cli import (
    api,
    backends,
    bench,
    compare,
    completion,
    doctor,
    evaluate,
    info,
    ps,
    run,
    signing,
    test,
)
from neuropod.cli.exit_codes import ExitCode, UsageError, exit_code_of, help_text
from neuropod.cli.interrupts import Terminated, ending_on_signals
from neuropod.cli.output import (
    abandon_output,
    flush_output,
    prepare_output,
    without_controls,
)
from neuropod.errors import NeuropodError

_COMMANDS = (
    info,
    run,
    test,
    bench,
    evaluate,
    compare,
    api,
    signing,
    backends,
    ps,
    doctor,
    completion,
)


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, without the usage."""

    def error(self, message: str) -> NoReturn:
        self.exit(
            ExitCode.WRONG_USAGE,
            f"neuropod: error: {_one_line(message)} (see {self.prog} --help)\n",
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command and returns its exit code.

    Without `arguments` it is the process's own command line, and signals are handled as such.
    """
    prepare_output()
    args = make_parser().parse_args(arguments)
    owns_signals = arguments is None and threading.current_thread() is threading.main_thread()
    try:
        with ending_on_signals() if owns_signals else nullcontext():
            return _run(args)
    except KeyboardInterrupt:
        return _fail("interrupted", ExitCode.INTERRUPTED, args.debug)
    except Terminated:
        return _fail("terminated", ExitCode.TERMINATED, args.debug)


def make_parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    parser = _Parser(
        prog="neuropod",
        description="Looks at packaged models, runs, tests and measures them, and installs the\n"
        "plug-ins that run them.",
        epilog=help_text(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"neuropod {neuropod.__version__}")
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--json", action="store_true", help="one JSON document on stdout")
    common.add_argument("--debug", action="store_true", help="show the traceback of an error")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for module in _COMMANDS:
        module.add_parser(commands, common)
    return parser


def _run(args: argparse.Namespace) -> int:
    command: Callable[[argparse.Namespace], int] = args.command
    try:
        code = command(args)
        flush_output()
        return code
    except BrokenPipeError:
        # Whoever read the output has enough.
        abandon_output()
        return ExitCode.DONE
    except UsageError as error:
        return _fail(str(error), ExitCode.WRONG_USAGE, args.debug)
    except NeuropodError as error:
        return _fail(error.message, exit_code_of(error.code), args.debug)
    except OSError as error:
        abandon_output()
        return _fail(_os_error_text(error), ExitCode.WRONG_USAGE, args.debug)


def _one_line(message: str) -> str:
    """A framework's own message may have many lines; --debug shows them as they are."""
    return without_controls(" ".join(message.split()))


def _fail(message: str, code: ExitCode, debug: bool) -> int:
    if debug:
        traceback.print_exc()
    print(f"neuropod: error: {_one_line(message)}", file=sys.stderr)
    return code


def _os_error_text(error: OSError) -> str:
    reason = error.strerror or str(error)
    return f"{error.filename}: {reason}" if error.filename else reason


if __name__ == "__main__":
    sys.exit(main())
