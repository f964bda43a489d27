import zipfile

import pytest

from neuropod._native import list_files, read_file
from neuropod.packaging import archive_rewriting
from neuropod.packaging.archive_rewriting import write_with_files


def contents(archive):
    """As the native reader has them."""
    return {name: read_file(archive, name) for name, _ in list_files(archive)}


def make(path, names, **options):
    with zipfile.ZipFile(path, "w", **options) as archive:
        for name in names:
            archive.writestr(name, f"content of {name}" * 10)
    return path


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_the_other_entries_keep_their_bytes_and_places(tmp_path, compression):
    archive = make(tmp_path / "a", ["config.json", "0/ä", "0/data/m"], compression=compression)
    write_with_files(archive, tmp_path / "b", {"signature.json": b"signed"})
    with zipfile.ZipFile(archive) as before, zipfile.ZipFile(tmp_path / "b") as after:
        end = before.start_dir
        assert after.testzip() is None
        assert {i.filename: i.header_offset for i in before.infolist()}.items() <= {
            i.filename: i.header_offset for i in after.infolist()
        }.items()
    assert (tmp_path / "b").read_bytes()[:end] == archive.read_bytes()[:end]
    assert contents(tmp_path / "b") == {**contents(archive), "signature.json": b"signed"}


def test_replacing_the_last_entry_leaves_nothing_of_it(tmp_path):
    archive = make(tmp_path / "a", ["config.json"])
    write_with_files(archive, tmp_path / "b", {"signature.json": b"a long first one" * 9})
    write_with_files(tmp_path / "b", tmp_path / "c", {"signature.json": b"second"})
    write_with_files(archive, tmp_path / "d", {"signature.json": b"second"})
    assert (tmp_path / "c").read_bytes() == (tmp_path / "d").read_bytes()


def test_replacing_an_entry_amid_others_works(tmp_path):
    archive = make(tmp_path / "a", ["config.json", "signature.json", "test_data.pkl"])
    write_with_files(archive, tmp_path / "b", {"signature.json": b"new", "manifest.json": b"{}"})
    expected = {**contents(archive), "signature.json": b"new", "manifest.json": b"{}"}
    assert contents(tmp_path / "b") == expected


def test_a_comment_stays(tmp_path):
    comment = b"who reads this?"
    with zipfile.ZipFile(tmp_path / "a", "w") as output:
        output.writestr("config.json", "{}")
        output.comment = comment
    write_with_files(tmp_path / "a", tmp_path / "b", {"signature.json": b"s"})
    with zipfile.ZipFile(tmp_path / "b") as archive:
        assert archive.comment == comment
        assert archive.namelist() == ["config.json", "signature.json"]


def test_archives_of_more_entries_than_16_bits_count(tmp_path):
    archive = tmp_path / "a"
    with zipfile.ZipFile(archive, "w") as output:
        for i in range(65_535):
            output.writestr(zipfile.ZipInfo(f"{i}"), b"")
    write_with_files(archive, tmp_path / "b", {"signature.json": b"s"})
    assert len(list_files(tmp_path / "b")) == 65_536
    write_with_files(tmp_path / "b", tmp_path / "c", {"signature.json": b"t"})
    assert read_file(tmp_path / "c", "signature.json") == b"t"


def test_entries_beyond_4_gib(tmp_path, monkeypatch):
    hole = 5 << 30
    archive, signed = tmp_path / "a", tmp_path / "b"
    with zipfile.ZipFile(archive, "w") as output:
        output.writestr("config.json", "{}")
        output.fp.seek(hole)  # where a large model would lie
        output.start_dir = hole
        output.writestr("0/data/far", "far")

    def copy_around_the_hole(source, output, size):
        output.write(source.read(1000))
        source.seek(hole)
        output.seek(hole)
        output.write(source.read(size - hole))

    monkeypatch.setattr(archive_rewriting, "_copy", copy_around_the_hole)
    write_with_files(archive, signed, {"signature.json": b"s"})
    expected = {"config.json": b"{}", "0/data/far": b"far", "signature.json": b"s"}
    assert contents(signed) == expected
    with zipfile.ZipFile(signed) as again:
        assert again.getinfo("signature.json").header_offset > hole
