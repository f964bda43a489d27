"""`neuropod completion`: a script that lets the shell complete commands, options and files."""

import argparse
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from neuropod.cli.exit_codes import ExitCode

if TYPE_CHECKING:
    from argparse import _SubParsersAction

_SHELLS: Final = ("bash", "zsh", "fish")
_FOLDER: Final = re.compile(r"\bDIR\b")
_FILE: Final = re.compile(r"\b(PACKAGE|FILE|PATH)|^(OLD|NEW)$|\.pem$")

_SETTING_UP: Final = """\
To try it in this shell:
  bash   source <(neuropod completion bash)
  zsh    eval "$(neuropod completion zsh)"
  fish   neuropod completion fish | source

To keep it, write the script where the shell looks for it:
  bash   ~/.local/share/bash-completion/completions/neuropod
  zsh    a file _neuropod in a folder of $fpath
  fish   ~/.config/fish/completions/neuropod.fish
"""


def add_parser(
    commands: "_SubParsersAction[argparse.ArgumentParser]", common: argparse.ArgumentParser
) -> None:
    parser = commands.add_parser(
        "completion",
        help="print a script that lets the shell complete commands and options",
        description="Prints a script for the shell.",
        epilog=_SETTING_UP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("shell", choices=_SHELLS)
    parser.set_defaults(command=_run, debug=False)


def _run(args: argparse.Namespace) -> int:
    import shtab

    from neuropod.cli.main import make_parser

    parser = make_parser()
    _shorten_descriptions(parser)
    for action in _actions(parser):
        metavar = action.metavar if isinstance(action.metavar, str) else ""
        if _FOLDER.search(metavar):
            action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]
        elif _FILE.search(metavar):
            action.complete = shtab.FILE  # type: ignore[attr-defined]
    print(shtab.complete(parser, args.shell))
    return ExitCode.DONE


def _shorten_descriptions(parser: argparse.ArgumentParser) -> None:
    """Shells show a command's text in one line: that of `--help`'s list, not the command's own."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for listed in action._choices_actions:
                action.choices[listed.dest].description = listed.help
            for command in action.choices.values():
                _shorten_descriptions(command)


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from _actions(command)
