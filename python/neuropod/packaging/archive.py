"""Zip archives that depend on nothing but the files' names and contents."""

import shutil
import zipfile
import zlib
from pathlib import Path
from typing import Final

from neuropod.packaging.manifest import list_files

_ENTRY_TIME: Final = (2000, 1, 1, 0, 0, 0)
_ENTRY_MODE: Final = 0o100644 << 16
_UNIX: Final = 3
_COPY_BYTES: Final = 1 << 20

_SAMPLE_BYTES: Final = 256 << 10
_WORTHWHILE: Final = 0.85
"""Files that deflate leaves larger than this part of their size are stored: weights shrink by a few
percent at most, and inflating them is what loading a model would spend most of its time on."""


def write_archive(folder: Path, archive: Path, compression: int = zipfile.ZIP_DEFLATED) -> None:
    """Writes the files of `folder` into a new zip at `archive`.

    Entries are sorted by name, and all have the same time and permissions: time zone, umask, the
    order of the folder and the clock leave no trace. Under ZIP_DEFLATED a file that hardly shrinks
    (see _WORTHWHILE) is stored.
    """
    with zipfile.ZipFile(archive, "x", compression=compression, allowZip64=True) as output:
        for name in list_files(folder):
            path = folder / name
            entry = zipfile.ZipInfo(name, _ENTRY_TIME)
            entry.compress_type = compression if _is_worthwhile(path) else zipfile.ZIP_STORED
            entry.create_system = _UNIX
            entry.external_attr = _ENTRY_MODE
            entry.file_size = path.stat().st_size
            with path.open("rb") as source, output.open(entry, "w") as target:
                shutil.copyfileobj(source, target, _COPY_BYTES)


def _is_worthwhile(path: Path) -> bool:
    """Whether deflate shrinks a file enough, judged by samples of its start, middle and end."""
    size = path.stat().st_size
    with path.open("rb") as file:
        sample = b""
        for start in sorted({0, max(0, (size - _SAMPLE_BYTES) // 2), max(0, size - _SAMPLE_BYTES)}):
            file.seek(start)
            sample += file.read(_SAMPLE_BYTES)
    return len(zlib.compress(sample)) <= _WORTHWHILE * len(sample)
