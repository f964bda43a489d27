import fcntl
import json
import shutil
import sys
import threading

import pytest

from neuropod import _native
from neuropod.backend_installer import (
    BackendInstallError,
    MissingToolsError,
    install_backend,
    shipped_platforms,
)
from neuropod.backend_installer.framework import release_of, semver_of
from neuropod.errors import BackendNotFoundError, InvalidArgumentError


def install(**options):
    lines = []
    return install_backend("tiny", report=lines.append, **options), lines


def visible(folder):
    return sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))


def test_builds_a_plug_in_that_the_search_finds(tiny, folder):
    installed, lines = install()
    assert installed.built
    assert visible(folder) == [installed.directory.name]
    assert installed.directory.name.startswith("tiny-2.13.0+cpu-")
    assert installed.directory.name.endswith(f"-{_native.ABI_VERSION}")
    manifest = json.loads((installed.directory / "backend.json").read_bytes())
    assert manifest["framework_version"] == "2.13.0+cpu"
    assert manifest["libraries"] == [str(tiny.site / "tiny_framework" / "libtiny.so.1")]
    candidates = _native.find_backends("tiny").candidates
    assert [c.manifest.directory for c in candidates if not c.rejected] == [
        str(installed.directory)
    ]
    assert any("tiny.cc" in line for line in lines)
    assert "tiny_framework" not in sys.modules


def test_builds_nothing_while_nothing_changed(tiny, folder):
    first, _ = install()
    before = (first.directory / "backend.json").stat().st_mtime_ns
    second, lines = install()
    assert not second.built
    assert lines == []
    assert (second.directory / "backend.json").stat().st_mtime_ns == before


def test_builds_again_on_request_and_when_the_sources_changed(tiny, folder):
    install()
    assert install(force=True)[0].built
    tiny.write_source("int tiny() { return 2; }")
    assert install()[0].built
    assert len(visible(folder)) == 1


def test_another_version_of_the_framework_gets_a_folder_of_its_own(tiny, folder):
    first, _ = install()
    tiny.install_framework("2.14.0")
    second, _ = install()
    assert visible(folder) == sorted([first.directory.name, second.directory.name])
    manifest = json.loads((second.directory / "backend.json").read_bytes())
    assert manifest["framework_version"] == "2.14.0"


def test_a_failed_build_shows_the_end_of_its_log_and_keeps_what_was_there(tiny, folder):
    installed, _ = install()
    tiny.write_source("int tiny() { return undeclared; }")
    with pytest.raises(BackendInstallError, match=r"(?s)compiling .* failed.*undeclared") as caught:
        install()
    assert "Traceback" not in str(caught.value)
    assert (installed.directory / "backend.json").is_file()
    assert visible(folder) == [installed.directory.name]
    logs = list((folder / ".logs").iterdir())
    assert str(logs[0]) in str(caught.value)
    assert "undeclared" in logs[0].read_text()
    assert [p.name for p in folder.iterdir() if p.name.startswith(".building")] == []


def test_a_failed_configuration_says_so(tiny):
    (tiny.sources / "CMakeLists.txt").write_text('message(FATAL_ERROR "no such thing")')
    with pytest.raises(BackendInstallError, match=r"(?s)configuring .* failed.*no such thing"):
        install()


def test_another_folder_can_be_chosen(tiny, folder, tmp_path):
    installed, _ = install(folder=tmp_path / "else where")
    assert installed.directory.parent == tmp_path / "else where"
    assert not folder.exists()


def test_a_folder_that_cannot_be_written_is_named(tiny, tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(BackendInstallError, match=r"file/below.*--to DIR"):
        install(folder=tmp_path / "file" / "below")


def test_two_installations_at_once_wait_for_each_other(tiny, folder):
    folder.mkdir(parents=True)
    lines, results = [], []
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        thread = threading.Thread(
            target=lambda: results.append(install_backend("tiny", report=lines.append))
        )
        thread.start()
        while not lines:
            thread.join(0.01)
            assert thread.is_alive()
        assert lines == ["waiting for another installation to finish …"]
        assert visible(folder) == []
    thread.join()
    assert results[0].built


def test_plug_ins_of_a_framework_that_is_gone_are_removed(tiny, folder, tmp_path, monkeypatch):
    first, _ = install()
    moved = tmp_path / "moved"
    shutil.move(tiny.site, moved)
    monkeypatch.syspath_prepend(moved)
    second, lines = install()
    assert visible(folder) == [second.directory.name]
    assert second.directory.name != first.directory.name
    assert any("is gone" in line for line in lines)


def test_without_the_framework_the_command_that_adds_it_is_named(tiny):
    tiny.describe(distribution="tiny-framework-of-others")
    with pytest.raises(BackendNotFoundError, match="-m pip install tiny-framework-of-others"):
        install()


def test_a_framework_that_is_too_old_is_refused_with_the_reason(tiny):
    tiny.install_framework("1.9.1")
    with pytest.raises(BackendNotFoundError, match=r"1.9.1 .* too old.*2.0 or newer.*another ABI"):
        install()


def test_a_platform_without_sources_lists_those_there_are(tiny):
    with pytest.raises(InvalidArgumentError, match=r"'../tiny'.*there are: tiny"):
        install_backend("../tiny")
    assert shipped_platforms() == ["tiny"]


def test_missing_tools_are_named_in_one_line(tiny, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(MissingToolsError) as caught:
        install()
    message = str(caught.value)
    assert "\n" not in message
    for text in ("g++ not found", "CMake >= 3.25 (not found)", "make", "apt-get install g++"):
        assert text in message


def test_a_cmake_that_is_too_old_is_named_with_its_version(tiny, tmp_path, monkeypatch):
    cmake = tmp_path / "bin" / "cmake"
    cmake.parent.mkdir()
    cmake.write_text("#!/bin/sh\necho cmake version 3.18.4\n")
    cmake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{cmake.parent}:/usr/bin:/bin")
    with pytest.raises(MissingToolsError, match=r"CMake >= 3.25 \(.*bin/cmake is 3.18\)"):
        install()


@pytest.mark.parametrize(
    ("version", "semver"),
    [
        ("2.13.0", "2.13.0"),
        ("2.13.0+cpu", "2.13.0+cpu"),
        ("2.1", "2.1.0"),
        ("2.14.0.dev20260101+cu124", "2.14.0-dev20260101+cu124"),
        ("2.5.0rc1", "2.5.0-rc1"),
        ("2.5.0.post1", "2.5.0"),
        ("2.5.0a0+git1.2", "2.5.0-a0+git1.2"),
    ],
)
def test_python_versions_become_semantic_ones(version, semver):
    assert semver_of(version) == semver
    assert _native.version_satisfies(semver.split("-")[0].split("+")[0], "*")


def test_versions_are_compared_by_number():
    assert release_of("2.13.0+cpu") > release_of("2.6")
    assert release_of("10.0") > release_of("9.9.9")
