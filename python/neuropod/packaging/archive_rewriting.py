"""Puts a file into a zip archive without touching the others: they stay byte for byte."""

import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from neuropod.errors import CorruptPackageError

_LOCAL: Final = struct.Struct("<4s5H3L2H")
_CENTRAL: Final = struct.Struct("<4s6H3L5H2L")
_END: Final = struct.Struct("<4s4H2LH")
_END64: Final = struct.Struct("<4sQ2H2L4Q")
_LOCATOR64: Final = struct.Struct("<4sLQL")

_LONGEST_COMMENT: Final = 0xFFFF
_MAX_16: Final = 0xFFFF
_MAX_32: Final = 0xFFFFFFFF
_COPY_BYTES: Final = 1 << 20

_MADE_BY_UNIX: Final = 3 << 8 | 20
_MADE_BY_UNIX_ZIP64: Final = 3 << 8 | 45
_ENTRY_DATE: Final = (2000 - 1980) << 9 | 1 << 5 | 1
"""Entries are dated as those of archives that we write, see archive.py."""
_ENTRY_MODE: Final = 0o100644 << 16


@dataclass
class _Directory:
    """The central directory: its records as they stand, by name."""

    offset: int
    records: dict[bytes, bytes]
    comment: bytes


def write_with_files(archive: Path, target: Path, files: Mapping[str, bytes]) -> None:
    """Writes `archive` to `target`, which is new, with `files` added or put in place of its own.

    Every other entry keeps its bytes and its place. `archive` was opened as a package before, so it is
    a whole one.
    """
    with archive.open("rb") as source, target.open("xb") as output:
        directory = _read_directory(source, archive)
        end = directory.offset
        for name in files:
            record = directory.records.pop(name.encode(), None)
            if record is not None:
                end = _end_without(record, end, directory)
        source.seek(0)
        _copy(source, output, end)
        for name, content in files.items():
            directory.records[name.encode()] = _write_entry(output, name.encode(), content)
        _write_directory(output, list(directory.records.values()), directory.comment)


def _read_directory(source: BinaryIO, archive: Path) -> _Directory:
    size = source.seek(0, 2)
    tail_start = max(0, size - _END.size - _LONGEST_COMMENT)
    source.seek(tail_start)
    tail = source.read()
    end = tail.rfind(b"PK\x05\x06", 0, len(tail) - _END.size + 4)
    # A comment may hold what looks like one; the true one says where the file ends.
    while end >= 0 and end + _END.size + _END.unpack_from(tail, end)[7] != len(tail):
        end = tail.rfind(b"PK\x05\x06", 0, end)
    if end < 0:
        raise CorruptPackageError(f"package '{archive}' is no whole zip archive")
    count, length, offset = _END.unpack_from(tail, end)[4:7]
    comment = tail[end + _END.size :]
    locator = end - _LOCATOR64.size
    if locator >= 0 and tail.startswith(b"PK\x06\x07", locator):
        source.seek(_LOCATOR64.unpack_from(tail, locator)[2])
        count, length, offset = _END64.unpack(source.read(_END64.size))[7:10]
    source.seek(offset)
    raw = source.read(length)
    records: dict[bytes, bytes] = {}
    position = 0
    for _ in range(count):
        fields = _CENTRAL.unpack_from(raw, position)
        record_end = position + _CENTRAL.size + sum(fields[10:13])
        name = raw[position + _CENTRAL.size : position + _CENTRAL.size + fields[10]]
        records[name] = raw[position:record_end]
        position = record_end
    return _Directory(offset, records, comment)


def _end_without(record: bytes, end: int, directory: _Directory) -> int:
    """Where the entries end once `record`'s isn't wanted: its bytes stay if others lie behind."""
    offset: int = _CENTRAL.unpack_from(record)[16]
    behind = [_CENTRAL.unpack_from(other)[16] for other in directory.records.values()]
    if offset == _MAX_32 or any(other > offset for other in behind):
        return end
    return min(end, offset)


def _copy(source: BinaryIO, output: BinaryIO, size: int) -> None:
    while size > 0:
        piece = source.read(min(size, _COPY_BYTES))
        if not piece:
            raise CorruptPackageError("the archive became shorter while it was copied")
        output.write(piece)
        size -= len(piece)


def _write_entry(output: BinaryIO, name: bytes, content: bytes) -> bytes:
    """Writes a stored entry; returns its record for the directory."""
    offset = output.tell()
    crc, size = zlib.crc32(content), len(content)
    output.write(
        _LOCAL.pack(b"PK\x03\x04", 20, 0, 0, 0, _ENTRY_DATE, crc, size, size, len(name), 0)
    )
    output.write(name + content)
    far = offset >= _MAX_32
    extra = struct.pack("<2HQ", 1, 8, offset) if far else b""
    record = _CENTRAL.pack(
        b"PK\x01\x02",
        _MADE_BY_UNIX_ZIP64 if far else _MADE_BY_UNIX,
        45 if far else 20,
        0,
        0,
        0,
        _ENTRY_DATE,
        crc,
        size,
        size,
        len(name),
        len(extra),
        0,
        0,
        0,
        _ENTRY_MODE,
        _MAX_32 if far else offset,
    )
    return record + name + extra


def _write_directory(output: BinaryIO, records: list[bytes], comment: bytes) -> None:
    offset, count = output.tell(), len(records)
    for record in records:
        output.write(record)
    end = output.tell()
    length = end - offset
    if count >= _MAX_16 or offset >= _MAX_32 or length >= _MAX_32:
        output.write(
            _END64.pack(
                b"PK\x06\x06",
                _END64.size - 12,
                _MADE_BY_UNIX_ZIP64,
                45,
                0,
                0,
                count,
                count,
                length,
                offset,
            )
        )
        output.write(_LOCATOR64.pack(b"PK\x06\x07", 0, end, 1))
    count, length, offset = min(count, _MAX_16), min(length, _MAX_32), min(offset, _MAX_32)
    end_record = _END.pack(b"PK\x05\x06", 0, 0, count, count, length, offset, len(comment))
    output.write(end_record + comment)
