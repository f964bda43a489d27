"""What the commands print: tables for people, JSON for programs."""

import json
import math
import sys
from collections.abc import Iterable, Sequence
from typing import Any

_MAX_WIDTH_WITHOUT_TERMINAL = 10_000


def print_json(value: Any) -> None:
    """One JSON document on stdout. NaN and infinities become strings, which JSON has no numbers for."""
    json.dump(_jsonable(value), sys.stdout, indent=2, ensure_ascii=False, allow_nan=False)
    print()


def print_text(text: str = "") -> None:
    """Plain text: nothing in it is markup."""
    print(_printable(text))


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """A table on stdout; as wide as its content where stdout isn't a terminal."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    class TableConsole(Console):
        def on_broken_pipe(self) -> None:
            """Leaves it to main(), which knows the exit code; rich would exit with 1."""
            raise BrokenPipeError

    table = Table(title=Text(title), title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(Text(_printable(cell)) for cell in row))
    width = None if sys.stdout.isatty() else _MAX_WIDTH_WITHOUT_TERMINAL
    TableConsole(file=sys.stdout, width=width, soft_wrap=False, highlight=False).print(table)


def _printable(text: str) -> str:
    """Control characters shown, so that a package can't steer the terminal."""
    return "".join(c if c.isprintable() or c == "\n" else repr(c)[1:-1] for c in text)


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
