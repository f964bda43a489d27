import json
import re

import pytest

from neuropod.backend_installer import install_backend, remove_backend
from neuropod.cli.main import main
from neuropod.errors import InvalidArgumentError, NotFoundError


def install(**options):
    return install_backend("tiny", report=lambda line: None, **options)


def remove(name, **options):
    return remove_backend(name, report=lambda line: None, **options)


def visible(folder):
    return sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))


def test_removes_a_platforms_only_plug_in(tiny, folder):
    installed = install()
    removed = remove("tiny")
    assert removed.directory == installed.directory
    assert visible(folder) == []
    assert [p.name for p in folder.iterdir() if p.name.startswith(".removed")] == []


def test_of_several_the_version_or_the_name_chooses(tiny, folder, tmp_path):
    tiny.write_prefix(tmp_path / "prefix")
    newer, older = install(), install(prefix=tmp_path / "prefix")
    with pytest.raises(InvalidArgumentError, match=r"several .*--framework-version") as caught:
        remove("tiny")
    for installed in (newer, older):
        assert installed.directory.name in str(caught.value)
    assert remove("tiny", framework_version="2.13.0").directory == newer.directory
    assert remove(older.directory.name).directory == older.directory
    assert visible(folder) == []
    assert (tmp_path / "prefix" / "lib" / "libtiny.so").is_file()


def test_a_private_environment_goes_with_its_last_plug_in(tiny, tmp_path, monkeypatch):
    tiny.write_wheel(tmp_path / "wheels", "2.14.0")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "wheels"))
    installed = install(framework_version="2.14.0")
    environment = tmp_path / "data" / "neuropod" / "environments" / "tiny-framework-2.14.0"
    other = installed.directory.with_name("tiny-of-an-older-abi")
    other.mkdir()
    for name in ("backend.json", "installation.json"):
        (other / name).write_bytes((installed.directory / name).read_bytes())

    assert remove(other.name).environment is None
    assert environment.is_dir()
    assert remove("tiny").environment == environment
    assert list(environment.parent.iterdir()) == []


def test_an_unknown_name_lists_those_there_are(tiny, tmp_path):
    with pytest.raises(NotFoundError, match=r"no plug-in 'tiny' .* there are: none"):
        remove("tiny", folder=tmp_path / "nothing")
    installed = install()
    with pytest.raises(NotFoundError, match=re.escape(f"there are: {installed.directory.name}")):
        remove("other")
    with pytest.raises(NotFoundError, match=r"'tiny', version 3.0, "):
        remove("tiny", framework_version="3.0")


def test_a_plug_in_outside_the_users_folder_is_left_with_what_to_do(tiny, folder):
    folder.mkdir(parents=True)
    with pytest.raises(InvalidArgumentError, match=r"the only place .*echo belongs to .*pip, apt"):
        remove("echo")


def test_a_plug_in_that_somebody_copied_there_is_left(tiny, folder):
    installed = install()
    (installed.directory / "installation.json").unlink()
    with pytest.raises(InvalidArgumentError, match=r"not made by .*`rm -r "):
        remove("tiny")
    assert visible(folder) == [installed.directory.name]


def test_a_broken_plug_in_can_be_removed_by_its_name(tiny, folder):
    installed = install()
    (installed.directory / "backend.json").write_text("{")
    remove(installed.directory.name)
    assert visible(folder) == []


def test_the_command_says_what_it_removed(tiny, capsys):
    installed = install()
    assert main(["backends", "remove", "tiny", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "directory": str(installed.directory),
        "environment": None,
    }
    assert main(["backends", "remove", "tiny"]) == 2
    assert "there are: none" in capsys.readouterr().err
