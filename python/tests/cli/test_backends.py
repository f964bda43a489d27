import json

import pytest
from echo_packager import ADDITION, create_echo_neuropod

from neuropod.cli.main import main


@pytest.fixture
def newer(tmp_path):
    """A package that no plug-in of its platform serves."""
    create_echo_neuropod(
        neuropod_path=tmp_path / "newer", platform_version_semver=">=2", **ADDITION
    )
    return str(tmp_path / "newer")


def listed(capsys, *arguments):
    assert main(["backends", "list", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)["backends"]


def test_the_one_that_serves_a_package_is_marked(capsys, addition):
    (echo,) = listed(capsys, "--for", addition)
    assert echo["platform"] == "echo"
    assert echo["serves"]
    assert main(["backends", "list", "--for", addition]) == 0
    shown = capsys.readouterr().out
    assert "plug-ins for addition_model (echo *)" in shown
    assert "serves it" in shown


def test_none_is_marked_where_none_serves_and_the_reason_stands_there(capsys, newer):
    (echo,) = listed(capsys, "--for", newer)
    assert not echo["serves"]
    assert echo["problem"] == "version 1.0.0 isn't in the range '>=2'"


def test_without_a_package_nothing_is_marked(capsys):
    assert all("serves" not in backend for backend in listed(capsys))


def test_a_package_that_cannot_be_read_is_3(capsys, tmp_path):
    assert main(["backends", "list", "--for", str(tmp_path / "none")]) == 3
    assert "none" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ["install", "torchscript", "--framework-version", "2.13.0", "--from-prefix", "/opt"],
        ["remove"],
    ],
)
def test_wrong_usage_is_2(capsys, arguments):
    with pytest.raises(SystemExit) as exit_:
        main(["backends", *arguments])
    assert exit_.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("command", [["info"], ["backends", "list", "--for"]])
def test_a_package_for_another_version_is_told_how_to_add_that(
    capsys, tmp_path, monkeypatch, command
):
    config = '{"name": "m", "platform": "torchscript", "platform_version_semver": "<2"}'
    (tmp_path / "config.json").write_text(config)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "none"))
    assert main([*command, str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert "`neuropod backends install torchscript` (with --framework-version or --from" in shown
