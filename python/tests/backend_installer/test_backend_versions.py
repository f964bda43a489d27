"""Plug-ins against another version of the framework than this environment's."""

import json
import subprocess
import sys

import pytest
from tiny_plugin import make_library

from neuropod import _native
from neuropod.backend_installer import BackendInstallError, install_backend
from neuropod.backend_installer.prefix_framework import find_framework_in_prefix
from neuropod.backend_installer.sources import find_sources
from neuropod.cli.main import main
from neuropod.errors import BackendNotFoundError, InvalidArgumentError


def install(**options):
    lines = []
    return install_backend("tiny", report=lines.append, **options), lines


def manifest_of(installed):
    return json.loads((installed.directory / "backend.json").read_bytes())


@pytest.fixture
def wheels(tiny, tmp_path, monkeypatch):
    """Versions 2.14.0 and 2.15.0+cpu, where pip's own configuration points."""
    folder = tmp_path / "wheels"
    for version in ("2.14.0", "2.15.0+cpu"):
        tiny.write_wheel(folder, version)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


@pytest.fixture
def environments(tmp_path):
    return tmp_path / "data" / "neuropod" / "environments"


@pytest.mark.parametrize(
    ("libraries", "headers"),
    [
        ("lib", "include"),
        ("libtiny-1.6.2/lib", "libtiny-1.6.2/include"),
        ("usr/lib/x86_64-linux-gnu", "usr/include"),
    ],
    ids=["archive", "folder of an archive", "Debian's packages"],
)
def test_a_framework_in_a_folder_is_found(tiny, folder, tmp_path, libraries, headers):
    place = tiny.write_prefix(tmp_path / "prefix", libraries=libraries, headers=headers)
    installed, _ = install(prefix=tmp_path / "prefix")
    assert installed.framework_version == "1.6.2"
    assert installed.directory.parent == folder
    assert manifest_of(installed)["libraries"] == [
        str(place / "libtinybase.so"),
        str(place / "libtiny.so"),
    ]
    assert not install(prefix=tmp_path / "prefix")[0].built


def test_an_archives_own_version_file_counts_first(tiny, tmp_path):
    tiny.write_prefix(tmp_path / "prefix")
    (tmp_path / "prefix" / "build-version").write_text("1.6.3+cpu\n")
    assert install(prefix=tmp_path / "prefix")[0].framework_version == "1.6.3+cpu"


def test_versions_lie_side_by_side_and_the_newest_in_range_comes_first(tiny, tmp_path):
    tiny.write_prefix(tmp_path / "prefix")
    install()
    install(prefix=tmp_path / "prefix")

    def usable(wanted):
        found = _native.find_backends("tiny", wanted).candidates
        return [c.manifest.framework_version for c in found if not c.rejected]

    assert usable("*") == ["2.13.0+cpu", "1.6.2"]
    assert usable("<2") == ["1.6.2"]


def test_old_cxx_abi_is_refused_with_that_reason(tiny, folder, tmp_path):
    tiny.write_prefix(tmp_path / "prefix", old_abi=True)
    with pytest.raises(BackendNotFoundError, match=r"old C\+\+ ABI .*_GLIBCXX_USE_CXX11_ABI=0"):
        install(prefix=tmp_path / "prefix")
    assert not folder.exists()


def test_missing_headers_are_named(tiny, tmp_path):
    tiny.write_prefix(tmp_path / "prefix", headers=None)
    with pytest.raises(BackendNotFoundError, match=r"not its headers.*include/tiny/tiny.h"):
        install(prefix=tmp_path / "prefix")


def test_a_folder_without_the_framework_says_what_it_lacks(tiny, tmp_path):
    (tmp_path / "prefix").mkdir()
    with pytest.raises(BackendNotFoundError, match=r"libtinybase.so, libtiny.so are not together"):
        install(prefix=tmp_path / "prefix")
    with pytest.raises(InvalidArgumentError, match=r"there is no folder .*/none"):
        install(prefix=tmp_path / "none")


def test_a_version_that_is_too_old_or_unknown_is_refused(tiny, tmp_path):
    tiny.write_prefix(tmp_path / "prefix", version="1.4.0")
    with pytest.raises(BackendNotFoundError, match=r"1.4.0 .* too old .* need 1.5 or newer"):
        install(prefix=tmp_path / "prefix")
    (tmp_path / "prefix" / "include" / "tiny" / "version.h").unlink()
    with pytest.raises(BackendNotFoundError, match=r"version of what lies .*version.h"):
        install(prefix=tmp_path / "prefix")


def test_a_library_that_lies_nowhere_is_named_before_anything_is_built(tiny, folder, tmp_path):
    make_library(tmp_path / "gone" / "libgone.so.7", "1")
    needs = [tmp_path / "gone" / "libgone.so.7"]
    tiny.write_prefix(tmp_path / "prefix", needs=needs)
    with pytest.raises(BackendNotFoundError, match=r"needs libgone\.so\.7, which are neither in"):
        install(prefix=tmp_path / "prefix")
    assert not folder.exists()


def test_a_library_in_the_loaders_own_path_counts_as_there(tiny, tmp_path, monkeypatch):
    make_library(tmp_path / "there" / "libthere.so.7", "1")
    needs = [tmp_path / "there" / "libthere.so.7"]
    tiny.write_prefix(tmp_path / "prefix", needs=needs)
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path / "there"))
    assert install(prefix=tmp_path / "prefix")[0].built


def test_a_library_that_lies_in_the_prefix_is_no_reason_to_refuse(tiny, tmp_path):
    library = tmp_path / "prefix" / "lib" / "deep" / "libdeep.so.7"
    make_library(library, "1")
    tiny.write_prefix(tmp_path / "prefix", needs=[library])
    found = find_framework_in_prefix(find_sources("tiny"), tmp_path / "prefix")
    assert found.dependency_folders == (library.parent,)


def test_what_a_killed_installation_left_is_removed(tiny, folder, environments):
    for place in (folder, environments):
        (place / ".building-killed" / "build").mkdir(parents=True)
    (environments / ".removed-killed").mkdir()
    install()
    assert [p.name for p in folder.glob(".building*")] == []
    assert list(environments.iterdir()) == []


def test_a_plug_in_that_cannot_be_opened_is_not_installed(tiny, folder):
    tiny.write_source('extern "C" int missing(); int tiny = missing();')
    with pytest.raises(BackendInstallError, match=r"can't be opened: .*undefined symbol: missing"):
        install()
    assert [p.name for p in folder.iterdir() if not p.name.startswith(".")] == []


def test_pip_fills_a_private_environment_of_that_very_version(tiny, wheels, environments):
    installed, lines = install(framework_version="2.14.0")
    assert installed.framework_version == "2.14.0"
    (library,) = manifest_of(installed)["libraries"]
    assert library.startswith(str(environments / "tiny-framework-2.14.0"))
    assert any("pip install tiny-framework==2.14.0" in line for line in lines)
    assert "tiny_framework" not in sys.modules

    again, lines = install(framework_version="2.14.0")
    assert not again.built
    assert lines == [f"using {environments / 'tiny-framework-2.14.0'}"]

    forced, lines = install(framework_version="2.14.0", force=True)
    assert forced.built
    assert not any("pip install" in line for line in lines)


def test_an_environment_that_an_interrupted_installation_left_is_made_again(
    tiny, wheels, environments
):
    left = environments / "tiny-framework-2.14.0"
    (left / "lib").mkdir(parents=True)
    (left / "lib" / "half").write_text("")
    install(framework_version="2.14.0")
    assert not (left / "lib" / "half").exists()


def test_nothing_is_left_of_an_environment_that_failed(tiny, wheels, environments, folder):
    with pytest.raises(BackendInstallError, match=r"(?s)==9.9.9 failed .* log: .*No matching") as e:
        install(framework_version="9.9.9")
    assert "2.14.0" in str(e.value)
    assert list(environments.iterdir()) == []

    tiny.write_source("int tiny() { return undeclared; }")
    with pytest.raises(BackendInstallError, match="undeclared"):
        install(framework_version="2.14.0")
    assert list(environments.iterdir()) == []


@pytest.mark.parametrize("version", ["latest", ">=2", "2.14.0 --index-url x", ""])
def test_what_is_no_version_is_refused(tiny, version):
    with pytest.raises(InvalidArgumentError, match="is no version"):
        install(framework_version=version)


def test_a_version_whose_wheels_are_too_old_is_refused_before_a_download(tiny, environments):
    with pytest.raises(BackendNotFoundError, match=r"1.9 is too old.*another ABI.*--from-prefix"):
        install(framework_version="1.9")
    assert not environments.exists()


def test_both_at_once_are_refused(tiny, tmp_path):
    with pytest.raises(InvalidArgumentError, match="exclude each other"):
        install(framework_version="2.14.0", prefix=tmp_path)


def test_another_copy_than_the_hosts_is_listed_with_that_reason(tiny, tmp_path):
    """In a process whose Python could import the framework: one process holds one copy."""
    tiny.write_prefix(tmp_path / "prefix")
    install(prefix=tmp_path / "prefix")
    program = "import sys; sys.path.insert(0, sys.argv.pop(1)); from neuropod.cli.main import main; main()"
    command = [sys.executable, "-c", program, str(tiny.site), "backends", "list", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    (listed,) = [b for b in json.loads(done.stdout)["backends"] if b["platform"] == "tiny"]
    assert not listed["usable"]
    assert "needs tiny 1.6.2" in listed["problem"]
    assert str(tiny.site / "tiny_framework") in listed["problem"]


def test_the_command_builds_from_a_prefix(tiny, tmp_path, capsys):
    tiny.write_prefix(tmp_path / "prefix")
    assert main(["backends", "install", "tiny", "--from-prefix", str(tmp_path / "prefix")]) == 0
    assert "plug-in for tiny (tiny_framework 1.6.2) built in" in capsys.readouterr().out


def test_a_plug_in_of_another_abi_is_listed_with_the_command_that_rebuilds_it(
    tiny, tmp_path, capsys
):
    tiny.write_prefix(tmp_path / "pre fix")
    installed, _ = install(prefix=tmp_path / "pre fix")
    path = installed.directory / "backend.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "neuropod_abi": "1"}))
    assert main(["backends", "list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)["backends"]
    (problem,) = [b["problem"] for b in listed if b["platform"] == "tiny"]
    assert problem == (
        f"built for neuropod ABI 1, this is ABI {_native.ABI_VERSION}: `neuropod backends install "
        f"tiny --from-prefix '{tmp_path / 'pre fix'}'` builds it again"
    )


def test_a_failed_build_ends_in_one_line_after_its_log(tiny, capsys):
    tiny.write_source("int tiny() { return undeclared; }")
    assert main(["backends", "install", "tiny"]) == 4
    lines = capsys.readouterr().err.splitlines()
    assert any("undeclared" in line for line in lines[:-1])
    assert lines[-1].startswith(
        "neuropod: error: compiling the plug-in failed (exit code 1); whole"
    )
    assert lines[-1].endswith(".log")
