import os
import random
import time
import zipfile

import pytest

from neuropod.packaging.archive import write_archive

FILES = {"config.json": b"{}", "0/data/größe.bin": b"\0" * 100_000, "0/data/a": b"a", "0.txt": b""}


@pytest.fixture
def folder(tmp_path):
    return write_tree(tmp_path / "tree", list(FILES))


def write_tree(root, names):
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(FILES[name])
    return root


def test_entries_are_sorted_and_carry_no_time_or_permissions_of_their_own(folder, tmp_path):
    (folder / "config.json").chmod(0o700)
    write_archive(folder, tmp_path / "a.zip")
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        entries = archive.infolist()
        assert [entry.filename for entry in entries] == sorted(FILES)
        assert {entry.date_time for entry in entries} == {(2000, 1, 1, 0, 0, 0)}
        assert {entry.external_attr for entry in entries} == {0o100644 << 16}
        assert {name: archive.read(name) for name in archive.namelist()} == FILES


def test_clock_time_zone_umask_and_order_leave_no_trace(folder, tmp_path, monkeypatch):
    write_archive(folder, tmp_path / "a.zip")
    monkeypatch.setenv("TZ", "Asia/Kathmandu")
    time.tzset()
    umask = os.umask(0o077)
    try:
        other = write_tree(tmp_path / "other", list(reversed(FILES)))
        for path in other.rglob("*"):
            os.utime(path, (10**9, 10**9))
        write_archive(other, tmp_path / "b.zip")
    finally:
        os.umask(umask)
        monkeypatch.undo()
        time.tzset()
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()


def test_can_store_without_compressing(folder, tmp_path):
    write_archive(folder, tmp_path / "a.zip", zipfile.ZIP_STORED)
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        assert all(e.compress_size == e.file_size for e in archive.infolist())


def test_stores_what_hardly_shrinks_and_deflates_the_rest(tmp_path):
    folder = tmp_path / "tree"
    folder.mkdir()
    (folder / "weights").write_bytes(random.Random(0).randbytes(2_000_000))
    (folder / "text").write_bytes(b"a graph, said again and again\n" * 50_000)
    write_archive(folder, tmp_path / "a.zip")
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        types = {entry.filename: entry.compress_type for entry in archive.infolist()}
        assert types == {"text": zipfile.ZIP_DEFLATED, "weights": zipfile.ZIP_STORED}
        assert archive.testzip() is None


def test_never_replaces_a_file(folder, tmp_path):
    (tmp_path / "a.zip").write_bytes(b"precious")
    with pytest.raises(FileExistsError):
        write_archive(folder, tmp_path / "a.zip")
    assert (tmp_path / "a.zip").read_bytes() == b"precious"
