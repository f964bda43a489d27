"""A progress bar on stderr, if that is a terminal."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Advance = Callable[[int], None]


class Progress:
    """Shows how far tasks are. Silent unless `shown`."""

    def __init__(self, shown: bool = False) -> None:
        self._shown = shown

    @staticmethod
    def for_terminal() -> "Progress":
        """Shown if stderr is a terminal."""
        return Progress(sys.stderr.isatty())

    @contextmanager
    def task(self, title: str, total: int | None) -> Iterator[Advance]:
        """Yields what counts steps. `total` None: how many isn't known."""
        if not self._shown:
            yield lambda _: None
            return
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as RichProgress

        columns: list[Any] = [
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
        ]
        with RichProgress(*columns, console=Console(stderr=True), transient=True) as bars:
            bar = bars.add_task(title, total=total)
            yield lambda steps: bars.advance(bar, steps)
