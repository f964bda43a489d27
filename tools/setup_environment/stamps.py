"""Stamps: what a finished step was made from, so that the next run can skip it."""

import hashlib
from collections.abc import Iterable
from pathlib import Path

from setup_environment.paths import ROOT, STAMPS


def fingerprint(files: Iterable[Path], extra: Iterable[str] = ()) -> str:
    """A digest of the files' names and contents, and of `extra`."""
    digest = hashlib.sha256()
    for path in sorted(files):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        digest.update(f"{path.relative_to(ROOT)}\0{content}\n".encode())
    for text in extra:
        digest.update(f"{text}\n".encode())
    return digest.hexdigest()


def matches(name: str, value: str) -> bool:
    """Whether step `name` was finished with this very fingerprint."""
    path = STAMPS / name
    return path.is_file() and path.read_text().strip() == value


def write(name: str, value: str) -> None:
    """Records that step `name` is finished. Lives in `.venv/`, so it goes when that goes."""
    STAMPS.mkdir(parents=True, exist_ok=True)
    (STAMPS / name).write_text(value + "\n")


def clear(name: str) -> None:
    """Forgets step `name`: what it made is about to change."""
    (STAMPS / name).unlink(missing_ok=True)
