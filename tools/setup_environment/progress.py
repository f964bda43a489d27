"""What the set-up prints: timestamped lines, and one moving line on a terminal."""

import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from setup_environment.paths import LOGS, ROOT

_HEARTBEAT_S = 15.0
_TAIL_LINES = 40


class SetupError(Exception):
    """Ends the set-up with one readable message."""


def say(text: str) -> None:
    """Prints a line with the time of day, at once."""
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)


class Steps:
    """Numbers the steps of a set-up: `[2/6] system packages`."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._current = 0

    def begin(self, title: str) -> None:
        self._current += 1
        say(f"[{self._current}/{self._total}] {title}")


def run_logged(
    title: str,
    command: Sequence[str | Path],
    log_name: str,
    environment: Mapping[str, str] | None = None,
) -> None:
    """Runs `command` from the repository root, its output going to `build/logs/<log_name>`.

    Says every 15 seconds (on a terminal: every second, in place) how long it has run and what it
    printed last. On failure the log's tail is printed and SetupError raised.
    """
    LOGS.mkdir(parents=True, exist_ok=True)
    log_path = LOGS / log_name
    words = [str(word) for word in command]
    started = time.monotonic()
    with log_path.open("wb") as log:
        log.write(f"$ {shlex.join(words)}\n".encode())
        log.flush()
        process = subprocess.Popen(
            words,
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(environment or {})},
        )
        try:
            status = _wait_with_progress(process, title, log_path, started)
        except BaseException:
            process.terminate()
            process.wait()
            raise
    seconds = time.monotonic() - started
    shown = log_path.relative_to(ROOT)
    if status != 0:
        tail = log_path.read_text(errors="replace").splitlines()[-_TAIL_LINES:]
        print("\n".join("    " + line for line in tail), flush=True)
        raise SetupError(f"{title} failed after {seconds:.0f} s (exit {status}); log: {shown}")
    say(f"{title} … {seconds:.0f} s")


def _wait_with_progress(
    process: subprocess.Popen[bytes], title: str, log_path: Path, started: float
) -> int:
    on_terminal = sys.stdout.isatty()
    interval_s = 1.0 if on_terminal else _HEARTBEAT_S
    while True:
        try:
            status = process.wait(interval_s)
            if on_terminal:
                print("\r\033[K", end="", flush=True)
            return status
        except subprocess.TimeoutExpired:
            line = f"{title} … {time.monotonic() - started:.0f} s: {_last_line(log_path)}"
            if on_terminal:
                width = shutil.get_terminal_size().columns
                print(f"\r\033[K{line[: width - 1]}", end="", flush=True)
            else:
                say(line[:140])


def _last_line(path: Path) -> str:
    with path.open("rb") as log:
        size = log.seek(0, os.SEEK_END)
        log.seek(max(0, size - 2000))
        lines = log.read().decode(errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "")
