"""`neuropod ps`: the processes that run models for others."""

import argparse
import sys
import time
from typing import TYPE_CHECKING

from neuropod.cli.doctor_machine import size_text
from neuropod.cli.exit_codes import ExitCode
from neuropod.cli.output import flush_output, print_json, print_table, print_text
from neuropod.workers import WorkerInfo, list_workers

if TYPE_CHECKING:
    from argparse import _SubParsersAction

_COLUMNS = (
    "PID",
    "model",
    "host",
    "state",
    "up",
    "CPU",
    "memory",
    "arenas",
    "calls",
    "in flight",
    "restarts",
)
_NUMBERS = ("PID", "host", "up", "CPU", "memory", "arenas", "calls", "in flight", "restarts")
_SECONDS_BETWEEN = 1.0


def add_parser(
    commands: "_SubParsersAction[argparse.ArgumentParser]", common: argparse.ArgumentParser
) -> None:
    parser = commands.add_parser(
        "ps",
        parents=[common],
        help="list the processes that run models for others",
        description="Every worker of this user, whatever program started it: processes of models that "
        "were loaded with use_ope=True, and those that `neuropod-worker --listen` started.",
    )
    parser.add_argument(
        "--watch", action="store_true", help="show them once a second, until Ctrl-C"
    )
    parser.set_defaults(command=_ps)


def _ps(args: argparse.Namespace) -> int:
    _show(args.json)
    while args.watch:
        flush_output()
        time.sleep(_SECONDS_BETWEEN)
        if sys.stdout.isatty() and not args.json:
            print("\x1b[H\x1b[2J", end="")
        _show(args.json)
    return ExitCode.DONE


def _show(as_json: bool) -> None:
    workers = list_workers()
    if as_json:
        print_json({"workers": workers})
    elif workers:
        print_table("workers", _COLUMNS, map(_row, workers), numbers=_NUMBERS)
    else:
        print_text("no workers: no program of this user runs a model with use_ope=True")


def _age(seconds: float) -> str:
    """The two largest units: "3 s", "2 min 5 s", "1 h 40 min", "12 d 3 h"."""
    whole = int(seconds)
    units = (("d", 86400), ("h", 3600), ("min", 60), ("s", 1))
    index = next((i for i, (_, length) in enumerate(units) if whole >= length), len(units) - 1)
    parts: list[str] = []
    for name, length in units[index : index + 2]:
        count, whole = divmod(whole, length)
        if count or not parts:
            parts.append(f"{count} {name}")
    return " ".join(parts)


def _row(worker: WorkerInfo) -> tuple[str, ...]:
    running = worker["running_seconds"]
    return (
        str(worker["pid"]),
        worker["model"] or "-",
        str(worker["host_pid"] or "-"),
        worker["state"],
        _age(running) if running > 0 else "-",
        f"{100 * worker['cpu_seconds'] / running:.0f} %" if running >= 1 else "-",
        size_text(worker["memory_bytes"]),
        size_text(worker["input_bytes"] + worker["output_bytes"]),
        str(worker["calls"]),
        str(worker["calls_in_flight"]),
        str(worker["restarts"]),
    )
