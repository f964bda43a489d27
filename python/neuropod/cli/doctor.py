"""`neuropod doctor`: what is installed, what could be in the way, and what to do about it."""

import argparse
from typing import TYPE_CHECKING

from neuropod.cli.exit_codes import ExitCode
from neuropod.cli.output import print_json, print_text

if TYPE_CHECKING:
    from argparse import _SubParsersAction

    from neuropod.cli.doctor_finding import Finding


def add_parser(
    commands: "_SubParsersAction[argparse.ArgumentParser]", common: argparse.ArgumentParser
) -> None:
    parser = commands.add_parser(
        "doctor",
        parents=[common],
        help="check the installation and the machine, with a remedy per problem",
        description="Looks at versions, plug-ins, compilers, the kernel, folders and the environment. "
        "No framework is imported, no plug-in opened, and nothing kept on disk. Exits with 4 if something "
        "prevents every model from running; notes, which limit one feature, don't change the exit code.",
    )
    parser.set_defaults(command=_run)


def _run(args: argparse.Namespace) -> int:
    from neuropod.cli.doctor_environment import check_environment
    from neuropod.cli.doctor_finding import Level
    from neuropod.cli.doctor_installation import check_installation
    from neuropod.cli.doctor_machine import check_machine

    sections = {
        "installation": check_installation(),
        "machine": check_machine(),
        "environment": check_environment(),
    }
    everything = [finding for findings in sections.values() for finding in findings]
    problems = [finding for finding in everything if finding.level is Level.PROBLEM]
    if args.json:
        print_json(
            {
                "healthy": not problems,
                **{name: [f.as_dict() for f in findings] for name, findings in sections.items()},
            }
        )
    else:
        _print(sections)
        notes = sum(finding.level is Level.NOTE for finding in everything)
        print_text(_summary(len(problems), notes))
    return ExitCode.NO_USABLE_BACKEND if problems else ExitCode.DONE


def _print(sections: "dict[str, list[Finding]]") -> None:
    width = max(len(finding.topic) for findings in sections.values() for finding in findings)
    for name, findings in sections.items():
        print_text(name)
        for finding in findings:
            print_text(f"  {finding.level:<7}  {finding.topic:<{width}}  {finding.text}")
            if finding.remedy:
                print_text(f"  {'':<7}  {'':<{width}}  remedy: {finding.remedy}")
        print_text()


def _summary(problems: int, notes: int) -> str:
    what = (
        "nothing prevents use"
        if not problems
        else f"{_count(problems, 'problem')} in the way of use"
    )
    return f"{what}, {_count(notes, 'note')}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
