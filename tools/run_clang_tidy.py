#!/usr/bin/env python3
"""Runs clang-tidy on the C++ files changed since origin/main.

Without origin/main, or with nothing changed since it (a fresh clone of main), on all. A changed
header is checked through the sources that include it directly. Files that passed are remembered
under `build/lint/` and not checked again until they, a header, their command or `.clang-tidy`
change.
"""

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CLANG_TIDY = ROOT / ".venv" / "bin" / "clang-tidy"
STATE = ROOT / "build" / "lint"
_DATABASE = "compile_commands.json"
_LAUNCHER = re.compile(r"^\S*ccache\s+")


@dataclass(frozen=True)
class Outcome:
    """What clang-tidy said about one file."""

    path: str
    passed: bool
    text: str
    seconds: float


def git(*arguments: str) -> str | None:
    """Output of a git command in the checkout, or None if it failed."""
    answer = subprocess.run(
        ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return answer.stdout if answer.returncode == 0 else None


def all_files() -> list[str]:
    """Every C++ file of the checkout that git doesn't ignore."""
    patterns = ("*.cc", "*.hh")
    listed = git("ls-files", "--cached", "--others", "--exclude-standard", "--", *patterns) or ""
    return sorted(path for path in set(listed.splitlines()) if (ROOT / path).is_file())


def changed_files() -> list[str] | None:
    """Those of `all_files` that differ from where this branch left origin/main; None: unknown."""
    base = git("merge-base", "origin/main", "HEAD")
    if base is None:
        return None
    changed = git("diff", "--name-only", base.strip()) or ""
    untracked = git("ls-files", "--others", "--exclude-standard") or ""
    names = {*changed.splitlines(), *untracked.splitlines()}
    return [path for path in all_files() if path in names]


def sources_to_check(changed: list[str], commands: dict[str, str]) -> list[str]:
    """The compiled sources among `changed`, and those that include a changed header directly."""
    headers = [path.removeprefix("source/") for path in changed if path.endswith(".hh")]
    included = tuple(f'"{header}"' for header in headers)
    sources = set(changed)
    for path in all_files():
        if path.endswith(".cc") and included:
            text = (ROOT / path).read_text()
            if any(header in text for header in included):
                sources.add(path)
    return sorted(path for path in sources if path in commands)


def compile_commands() -> dict[str, str]:
    """Command per file (from the root) of the release build and of plug-ins built beside it.

    Writes them as one database into build/lint/, which clang-tidy then reads.
    """
    commands: dict[str, str] = {}
    entries = []
    databases = [ROOT / "build" / "release" / _DATABASE]
    databases += sorted((ROOT / "build" / "plugins").glob(f"*/{_DATABASE}"))
    for database in databases:
        if not database.is_file():
            continue
        for entry in json.loads(database.read_text()):
            path = Path(entry["directory"], entry["file"]).resolve()
            name = os.path.relpath(path, ROOT)
            if name not in commands and path.is_relative_to(ROOT):
                entry["command"] = _LAUNCHER.sub("", entry["command"])
                commands[name] = entry["command"]
                entries.append({**entry, "file": str(path)})
    STATE.mkdir(parents=True, exist_ok=True)
    (STATE / _DATABASE).write_text(json.dumps(entries))
    return commands


class PassedFiles:
    """Remembers which files passed, by a digest of all that decides the outcome."""

    def __init__(self, commands: dict[str, str]) -> None:
        self._commands = commands
        self._file = STATE / "passed.json"
        self._passed = set(json.loads(self._file.read_text())) if self._file.is_file() else set()
        common = hashlib.sha256((ROOT / ".clang-tidy").read_bytes())
        common.update(subprocess.check_output([CLANG_TIDY, "--version"]))
        for header in (path for path in all_files() if path.endswith(".hh")):
            common.update((ROOT / header).read_bytes())
        self._common = common.hexdigest()

    def contains(self, path: str) -> bool:
        return self._digest(path) in self._passed

    def add(self, path: str) -> None:
        self._passed.add(self._digest(path))
        self._file.write_text(json.dumps(sorted(self._passed)))

    def _digest(self, path: str) -> str:
        content = hashlib.sha256((ROOT / path).read_bytes()).hexdigest()
        parts = "\0".join((self._common, path, self._commands[path], content))
        return hashlib.sha256(parts.encode()).hexdigest()


def check(path: str) -> Outcome:
    """Runs clang-tidy on one file."""
    started = time.monotonic()
    answer = subprocess.run(
        [CLANG_TIDY, "--quiet", f"-p={STATE}", "--extra-arg=-Wno-unknown-warning-option", path],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    # stderr holds "1234 warnings generated" of the system's headers; only a failure needs it.
    text = answer.stdout if answer.returncode == 0 or answer.stdout else answer.stderr
    text = text.replace(f"{ROOT}{os.sep}", "").strip()
    return Outcome(path, answer.returncode == 0, text, time.monotonic() - started)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", action="store_true", help="check every file")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    arguments = parser.parse_args()

    commands = compile_commands()
    changed = None if arguments.all else changed_files()
    chosen = sources_to_check(changed or all_files(), commands)
    passed = PassedFiles(commands)
    due = [path for path in chosen if not passed.contains(path)]
    scope = "changed since origin/main" if changed else "in all"
    print(f"clang-tidy: {len(chosen)} files {scope}, {len(due)} not checked yet", flush=True)
    if not commands:
        print("clang-tidy: no compile commands under build/: run make setup", file=sys.stderr)
        return 1

    failed = 0
    with ThreadPoolExecutor(arguments.jobs) as executor:
        running = [executor.submit(check, path) for path in due]
        for number, finished in enumerate(as_completed(running), 1):
            outcome = finished.result()
            print(f"[{number}/{len(due)}] {outcome.path} … {outcome.seconds:.0f} s", flush=True)
            if outcome.passed:
                passed.add(outcome.path)
            else:
                failed += 1
                print(outcome.text, flush=True)
    print(f"clang-tidy: {failed} files with findings")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
