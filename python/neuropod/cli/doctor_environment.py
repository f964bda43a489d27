"""Environment variables and the locale."""

import difflib
import os
import sys
from pathlib import Path
from typing import Final

from neuropod.cli.doctor_finding import Finding, Level

KNOWN_VARIABLES: Final = (
    "NEUROPOD_BACKEND_PATH",
    "NEUROPOD_BASE_DIR",
    "NEUROPOD_LOG_FORMAT",
    "NEUROPOD_LOG_LEVEL",
    "NEUROPOD_TEST_FAULT",
    "NEUROPOD_WORKER",
    "XDG_DATA_HOME",
    "TMPDIR",
)
"""What docs/environment.md lists."""

_PREFIX: Final = "NEUROPOD_"
_BUILD_PREFIX: Final = "NEUROPOD_BUILD_"
_CHOICES: Final = {
    "NEUROPOD_LOG_LEVEL": ("TRACE", "DEBUG", "INFO", "WARN", "ERROR"),
    "NEUROPOD_LOG_FORMAT": ("TEXT", "JSON"),
}
"""In any case; anything else is as if the variable weren't set."""

_OTHERS: Final = ("LD_LIBRARY_PATH", "LD_PRELOAD", "PYTHONPATH", "CXX")
"""They change which libraries, modules and compilers are found."""


def check_environment() -> list[Finding]:
    own = [
        _variable(name, os.environ[name])
        for name in sorted(os.environ)
        if name.startswith(_PREFIX) and not name.startswith(_BUILD_PREFIX)
    ]
    listed = [name for name in KNOWN_VARIABLES if not name.startswith(_PREFIX)]
    others = [
        Finding(name, os.environ[name]) for name in (*listed, *_OTHERS) if os.environ.get(name)
    ]
    return [*own, *others, _locale()]


def _variable(name: str, value: str) -> Finding:
    if name not in KNOWN_VARIABLES:
        return Finding(
            name,
            f"{value} (Neuropod has no such variable{_nearest(name)})",
            Level.NOTE,
            f"`unset {name}`, or correct its name",
        )
    choices = _CHOICES.get(name, ())
    if choices and value.upper() not in choices:
        text = f"{value} isn't known, so the default is used"
        return Finding(name, text, Level.NOTE, f"set it to one of {', '.join(choices)}")
    if name in ("NEUROPOD_BACKEND_PATH", "NEUROPOD_BASE_DIR"):
        missing = [part for part in value.split(":") if part and not Path(part).is_dir()]
        if missing:
            text = f"{value} ({', '.join(missing)}: no such folder)"
            return Finding(name, text, Level.NOTE, "make the folder, or leave it out")
    return Finding(name, value)


def _nearest(name: str) -> str:
    nearest = difflib.get_close_matches(name, KNOWN_VARIABLES, n=1)
    return f"; did you mean {nearest[0]!r}?" if nearest else ""


def _locale() -> Finding:
    encoding = sys.stdout.encoding or "unknown"
    variable = next((v for v in ("LC_ALL", "LC_CTYPE", "LANG") if os.environ.get(v)), "")
    text = f"output in {encoding}" + (f" ({variable}={os.environ[variable]})" if variable else "")
    if encoding.lower().replace("_", "-") in ("utf-8", "utf8"):
        return Finding("locale", text)
    return Finding(
        "locale",
        f"{text}; other characters are printed as \\x.. or \\u....",
        Level.NOTE,
        "`export LC_ALL=C.UTF-8`, and unset PYTHONIOENCODING",
    )
