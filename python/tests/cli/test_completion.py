"""`neuropod completion`, in real shells where they are installed."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from test_cli import failed

from neuropod.cli.main import main

# Completes the words of COMP_LINE as bash does when Tab is pressed, and prints what it would offer.
ASK_BASH = """
source "$1"
shift
COMP_WORDS=("$@")
COMP_CWORD=$(( $# - 1 ))
COMP_LINE="$*"
COMP_POINT=${#COMP_LINE}
function_name=$(complete -p neuropod | sed 's/.*-F \\([^ ]*\\) .*/\\1/')
"$function_name" neuropod "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
printf '%s\\n' "${COMPREPLY[@]}"
"""


def script(capsys, shell):
    assert main(["completion", shell]) == 0
    return capsys.readouterr().out


@pytest.fixture
def ask(capsys, tmp_path):
    """What bash offers for a line that is being typed."""
    (tmp_path / "completion.bash").write_text(script(capsys, "bash"))
    (tmp_path / "model.neuropod").touch()
    (tmp_path / "folder").mkdir()

    def run(*words):
        ended = subprocess.run(
            ["bash", "--norc", "-c", ASK_BASH, "ask", "completion.bash", "neuropod", *words],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        )
        assert ended.stderr == ""
        return set(ended.stdout.split())

    return run


def test_bash_completes_commands(ask):
    assert {"info", "run", "test", "bench", "doctor", "backends", "completion"} <= ask("")
    assert ask("be") == {"bench"}


def test_bash_completes_options_of_the_command(ask):
    assert {"--rtol", "--atol", "--json"} <= ask("test", "--")
    assert ask("bench", "--thr") == {"--threads"}
    assert "--rtol" not in ask("info", "--")


def test_bash_completes_actions_of_a_command(ask):
    assert {"list", "install"} <= ask("backends", "")


def test_bash_completes_choices(ask):
    assert ask("completion", "") >= {"bash", "zsh", "fish"}


def test_bash_completes_files_and_folders(ask):
    assert "model.neuropod" in ask("info", "mod")
    assert "model.neuropod" in ask("run", "x", "--output", "m")
    offered = ask("backends", "install", "--to", "")
    assert "folder" in offered
    assert "model.neuropod" not in offered


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_is_valid_in_its_shell(capsys, tmp_path, shell):
    """By the shell's own parser; where the shell isn't installed, its command names must be there."""
    written = script(capsys, shell)
    for command in ("bench", "doctor"):
        assert command in written
    path = tmp_path / "script"
    path.write_text(written)
    if shutil.which(shell):
        ended = subprocess.run([shell, "-n", path], capture_output=True, text=True, check=False)
        assert (ended.returncode, ended.stderr) == (0, "")


def test_sourcing_the_command_works_as_its_help_says():
    line = f'source <("{sys.executable}" -m neuropod completion bash) && complete -p neuropod'
    ended = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=True)
    assert "-F " in ended.stdout
    assert ended.stderr == ""


def test_another_shell_is_2(capsys):
    code, message = failed(capsys, "completion", "csh")
    assert code == 2
    assert "bash" in message and "zsh" in message and "fish" in message


def test_the_script_needs_nothing_of_this_installation(capsys):
    assert str(Path(sys.prefix)) not in script(capsys, "bash")
