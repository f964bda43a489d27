"""Ctrl-C and SIGTERM, even while a model runs.

Python looks at signals between its own instructions only, so a call of a model, which may take minutes,
would hold them up. A thread that the signal wakes ends the process in that case.
"""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Final, NoReturn

from neuropod.cli.exit_codes import ExitCode

_GRACE_SECONDS: Final = 0.5
"""How long the main thread has to notice a signal before it counts as busy in native code."""

_ENDS: Final = {
    int(signal.SIGINT): ("interrupted", ExitCode.INTERRUPTED),
    int(signal.SIGTERM): ("terminated", ExitCode.TERMINATED),
}


class Terminated(BaseException):
    """SIGTERM, raised where KeyboardInterrupt would be, so that temporary files are removed."""


@contextmanager
def ending_on_signals() -> Iterator[None]:
    """SIGINT raises KeyboardInterrupt and SIGTERM raises Terminated in here, in the main thread.

    If the main thread is in native code, or at the second signal, the process ends at once with the
    exit code of the signal; temporary files of that call stay. A signal that the parent lets this
    process ignore (`nohup`, `&` in scripts) stays ignored. Enter it in the main thread only.
    """
    noticed = threading.Event()

    def notice(number: int, _frame: FrameType | None) -> None:
        noticed.set()
        raise KeyboardInterrupt if number == signal.SIGINT else Terminated

    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    previous_wakeup = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    previous = {
        number: signal.signal(number, notice)
        for number in _ENDS
        if signal.getsignal(number) is not signal.SIG_IGN
    }
    watcher = threading.Thread(target=_watch, args=(reading, noticed), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(previous_wakeup)
        os.close(writing)


def _watch(reading: int, noticed: threading.Event) -> None:
    signals_seen = 0
    while received := os.read(reading, 1):
        number = received[0]
        if number not in _ENDS:
            continue
        signals_seen += 1
        if signals_seen > 1 or not noticed.wait(_GRACE_SECONDS):
            cause, code = _ENDS[number]
            _say(f"neuropod: error: {cause}\n")
            leave_at_once(code)
    os.close(reading)


def _say(line: str) -> None:
    """Past Python's buffers, whose locks the main thread may hold."""
    with suppress(OSError):
        os.write(2, line.encode())


def leave_at_once(code: ExitCode) -> NoReturn:
    """Ends the process without waiting for calls that still run."""
    os._exit(code)
