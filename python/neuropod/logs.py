"""Where the library's own log lines go, how they look and how many there are.

They go to stderr, never to stdout; docs/logging.md has examples.
"""

from collections.abc import Callable
from typing import Literal

LogSink = Callable[[str, str, str, int, float], object]


def set_log_sink(sink: LogSink | None) -> None:
    """Sends log lines to `sink(level, message, file, line, time)` instead of stderr; None restores
    stderr.

    `level` is "TRACE", "DEBUG", "INFO", "WARN" or "ERROR", `file` and `line` the place in the
    library's sources, `time` seconds since the epoch, as `time.time()`. There is one sink for the
    whole process. It runs on the thread that logs, which may be any. A line whose sink raises goes
    to stderr, and that it raised is said there once; what is logged while a thread is inside the sink
    goes to stderr too, and so does everything once the interpreter ends.
    """
    from neuropod import _native

    _native.set_log_sink(sink)


def set_log_level(level: Literal["TRACE", "DEBUG", "INFO", "WARN", "ERROR"] | str) -> None:
    """Changes the level that NEUROPOD_LOG_LEVEL set, for the whole process. InvalidArgumentError for
    a name that is none."""
    from neuropod import _native

    _native.set_log_level(level)


def set_log_format(format: Literal["text", "json"] | str) -> None:
    """Changes what a line on stderr looks like, which NEUROPOD_LOG_FORMAT set, for the whole process:
    "text" for people, "json" for collectors (an object per line). InvalidArgumentError for a name that
    is neither."""
    from neuropod import _native

    _native.set_log_format(format)
