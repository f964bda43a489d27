"""What the commands print: tables for people, JSON for programs.

Works on any stdout: what its encoding lacks is written as `\\xe9` or `\\u4e2d`; where it is no terminal
there are neither control characters nor limits of width.
"""

import io
import json
import math
import os
import re
import sys
from collections.abc import Iterable, Sequence
from typing import Any

_WIDTH_WITHOUT_TERMINAL = 10_000
_LEAST_TEXT_WIDTH = 8
_SURROGATES = re.compile("[\ud800-\udfff]")


def prepare_output() -> None:
    """Lets text of any kind be printed. Called once, before anything is."""
    _open_closed_descriptors()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _open_closed_descriptors() -> None:
    """A closed stdout or stderr becomes one that drops everything.

    Otherwise the next file that is opened would get the free number, and with it what is printed.
    """
    for descriptor, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number, which is this one
            os.set_inheritable(descriptor, True)
        if getattr(sys, name) is None:
            mode = "r" if name == "stdin" else "w"
            setattr(sys, name, open(descriptor, mode, encoding="utf-8"))  # noqa: SIM115, PTH123 for good


def flush_output() -> None:
    """Writes what is buffered, so that a full disk or a closed pipe shows while it can be handled."""
    sys.stdout.flush()


def abandon_output() -> None:
    """Drops what can't be written; Python would complain about it once more when it ends."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def print_json(value: Any) -> None:
    """One JSON document on stdout. NaN and infinities become strings, which JSON has no numbers for."""
    print(json_text(value, ascii_only=not _is_utf8()))


def json_text(value: Any, ascii_only: bool = False) -> str:
    """The document that `print_json` prints."""
    text = json.dumps(_jsonable(value), indent=2, ensure_ascii=ascii_only, allow_nan=False)
    return _SURROGATES.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def print_text(text: str = "") -> None:
    """Plain text: nothing in it is markup. Lines after the first are indented, so that none that stands
    in a package can pass for one of the command's."""
    print(printable(text).replace("\n", "\n  "))


def print_table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], numbers: Sequence[str] = ()
) -> None:
    """A table on stdout; as wide as its content where stdout isn't a terminal.

    `numbers`: the columns whose cells are aligned to the right and never broken. In a terminal that is too
    narrow for that, each row is printed as lines of its own.
    """
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    cells = [[printable(cell) for cell in row] for row in rows]
    is_terminal = sys.stdout.isatty()
    console = Console(
        file=sys.stdout,
        width=None if is_terminal else _WIDTH_WITHOUT_TERMINAL,
        force_terminal=is_terminal,
        color_system="auto" if is_terminal else None,
        highlight=False,
    )
    table = Table(
        box=SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    least = _least_widths(columns, cells)
    is_tight = _natural_width(columns, cells) > console.width
    for column, width in zip(columns, least, strict=True):
        if column in numbers:
            # Where room is scarce rich would share it out, and cut what is left over.
            table.add_column(
                column, justify="right", min_width=width, width=width if is_tight else None
            )
        else:
            table.add_column(column, overflow="fold")
    text_columns = len(columns) - len(numbers)
    needed = sum(w for c, w in zip(columns, least, strict=True) if c in numbers)
    if needed + _LEAST_TEXT_WIDTH * text_columns + 2 * len(columns) > console.width:
        _print_records(title, columns, cells)
        return
    for row in cells:
        table.add_row(*(Text(cell) for cell in row))
    print_text(title)  # rich would break it at the width of the table
    # Captured, because rich itself would end the process when a pipe is closed.
    with console.capture() as captured:
        console.print(table)
    print("\n".join(line.rstrip() for line in captured.get().splitlines()) + "\n")


def _least_widths(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[int]:
    """Of each column: the widest cell, or the longest word of its heading."""
    return [
        max([*map(len, column.split()), *(len(row[i]) for row in rows)])
        for i, column in enumerate(columns)
    ]


def _natural_width(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> int:
    """Of the table if nothing is broken or folded."""
    widths = [
        max([len(column), *(len(row[i]) for row in rows)]) for i, column in enumerate(columns)
    ]
    return sum(widths) + 2 * len(columns)


def _print_records(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    print_text(title)
    for row in rows:
        print()
        for column, cell in zip(columns, row, strict=True):
            print(f"{column}: {cell}")
    print()


def printable(text: str) -> str:
    """Control characters shown, so that a package can't steer the terminal; and what stdout can't say."""
    encoding = sys.stdout.encoding or "utf-8"
    return without_controls(text).encode(encoding, "backslashreplace").decode(encoding)


def without_controls(text: str) -> str:
    """Control characters but line ends, and bytes that aren't UTF-8, as escapes."""
    return "".join(c if c.isprintable() or c == "\n" else _shown(c) for c in text)


def _shown(character: str) -> str:
    """`\\x1b`; for a byte of a file name that isn't UTF-8, which Python keeps as a surrogate, `\\xff`."""
    if "\udc80" <= character <= "\udcff":
        return f"\\x{ord(character) - 0xDC00:02x}"
    return repr(character)[1:-1]


def _is_utf8() -> bool:
    return (sys.stdout.encoding or "utf-8").lower().replace("_", "-") in ("utf-8", "utf8")


def _jsonable(value: Any) -> Any:
    if isinstance(value, float):
        if math.isfinite(value):
            return value
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, complex):
        return [_jsonable(value.real), _jsonable(value.imag)]
    if isinstance(value, bytes):
        return value.decode(errors="backslashreplace")
    if isinstance(value, dict):
        return {str(key): _jsonable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_jsonable(item) for item in value]
    return value
