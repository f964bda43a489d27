"""Commands without a terminal, in other locales, without a HOME, in folders that can't be written to."""

import fcntl
import json
import os
import pty
import shutil
import struct
import subprocess
import sys
import termios

import numpy as np
import pytest
from echo_packager import create_echo_neuropod
from processes import PROGRAM, done

LOCALES = {
    "utf8": {},
    "C": {"LC_ALL": "C", "LANG": None},
    "POSIX": {"LC_ALL": "POSIX", "LANG": None},
    "ascii": {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    "latin1": {"PYTHONIOENCODING": "latin-1"},
}
NAME = "größe 模型"
COMMANDS = [
    ["info"],
    ["test"],
    ["run", "-i", "in.npz"],
    ["bench", "--calls", "3", "--warm-up", "0"],
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model whose names aren't ASCII, in files whose names aren't either; one isn't UTF-8."""
    folder = tmp_path_factory.mktemp("surroundings")
    x = np.arange(4, dtype="float32")
    create_echo_neuropod(
        neuropod_path=folder / "模型.neuropod",
        model_name=NAME,
        input_spec=[{"name": "eingäbe", "dtype": "float32", "shape": ("größe",)}],
        output_spec=[{"name": "出力", "dtype": "float32", "shape": ("größe",)}],
        outputs={"出力": {"op": "identity", "input": "eingäbe"}},
        test_input_data={"eingäbe": x},
        test_expected_out={"出力": x},
    )
    shutil.copy(folder / "模型.neuropod", os.fsencode(folder) + b"/\xff\xfe.neuropod")
    np.savez(folder / "in.npz", eingäbe=x)
    return folder


def on_terminal(command, columns, **options):
    """Runs the command on a pseudo-terminal of that width; returns its exit code and what it wrote."""
    parent, child = pty.openpty()
    fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = subprocess.Popen(command, stdout=child, stderr=child, stdin=child, **options)
    os.close(child)
    written = b""
    while True:
        try:
            part = os.read(parent, 65536)
        except OSError:
            break
        if not part:
            break
        written += part
    os.close(parent)
    return process.wait(), written.decode()


# Locales and names.


@pytest.mark.parametrize("locale", [name for name in LOCALES if name != "utf8"])
def test_any_name_can_be_printed_in_any_locale(folder, locale):
    packages = [("模型.neuropod".encode(), COMMANDS), (b"\xff\xfe.neuropod", [["info", "--json"]])]
    for package, commands in packages:
        for name, *options in commands:
            ended = done(
                name, package, *options, cwd=folder, environment=LOCALES[locale], text=False
            )
            assert (ended.returncode, ended.stderr) == (0, b"")


@pytest.mark.parametrize(
    ("locale", "expected"),
    [
        ("utf8", NAME.encode()),
        ("C", NAME.encode()),
        ("ascii", rb"gr\xf6\xdfe \u6a21\u578b"),
        ("latin1", b"gr\xf6\xdfe \\u6a21\\u578b"),
    ],
)
def test_what_the_encoding_lacks_is_escaped(folder, locale, expected):
    ended = done("info", "模型.neuropod", cwd=folder, environment=LOCALES[locale], text=False)
    assert expected in ended.stdout.splitlines()[0]


def test_json_means_the_same_in_every_locale(folder):
    for environment in LOCALES.values():
        ended = done("info", "模型.neuropod", "--json", cwd=folder, environment=environment)
        assert json.loads(ended.stdout)["name"] == NAME


def test_a_file_name_that_is_not_utf8_is_shown_by_its_bytes(folder):
    ended = done("test", b"\xff\xfe.neuropod", cwd=folder)
    assert r"(\xff\xfe.neuropod)" in ended.stdout
    missing = done("test", b"\xff missing", cwd=folder)
    assert missing.returncode == 3
    assert r"'\xff missing'" in missing.stderr


def test_pages_and_files_have_such_a_name_too(folder, tmp_path):
    reports = ("--html", tmp_path / "page.html", "--json-file", tmp_path / "figures.json")
    package = b"\xff\xfe.neuropod"
    ended = done("evaluate", package, "--data", "in.npz", *reports, cwd=folder)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert r"\udcff\udcfe.neuropod" in (tmp_path / "page.html").read_text()
    (found,) = json.loads((tmp_path / "figures.json").read_text())["packages"]
    assert os.fsencode(found["name"]) == package


# No terminal, or a small one.


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_without_a_terminal_nothing_is_cut_and_no_control_characters_are_written(folder, command):
    """Also where the environment asks for a narrow or a coloured terminal."""
    name, *options = command
    environment = {"COLUMNS": "10", "FORCE_COLOR": "1", "TERM": "xterm-256color"}
    ended = done(name, "模型.neuropod", *options, cwd=folder, environment=environment)
    assert ended.returncode == 0
    assert all(c.isprintable() or c == "\n" for c in ended.stdout)
    assert "…" not in ended.stdout
    assert not any(line != line.rstrip() for line in ended.stdout.splitlines())
    if name == "info":
        (config,) = (line for line in ended.stdout.splitlines() if line.startswith("config.json"))
        assert len(config.split()[-1]) == 64


@pytest.mark.parametrize("columns", [1, 5, 20, 80])
def test_a_terminal_of_any_width_shows_everything(folder, columns):
    environment = {**os.environ, "TERM": "xterm"}
    environment.pop("COLUMNS", None)
    code, written = on_terminal(
        [*PROGRAM, "test", "模型.neuropod"], columns, cwd=folder, env=environment
    )
    assert code == 0
    assert "passed in" in written
    assert "…" not in written


@pytest.mark.parametrize("columns", [10, 40, 90])
def test_numbers_are_never_broken(folder, columns):
    command = [*PROGRAM, "bench", "模型.neuropod", "--calls", "12345", "--warm-up", "0"]
    code, written = on_terminal(command, columns, cwd=folder, env={**os.environ, "TERM": "xterm"})
    assert code == 0
    assert "12,345" in written


@pytest.mark.parametrize("columns", ["0", "-1", "nonsense", "3"])
def test_a_strange_variable_columns_is_no_error(folder, columns):
    environment = {**os.environ, "COLUMNS": columns, "TERM": "xterm"}
    code, written = on_terminal(
        [*PROGRAM, "info", "模型.neuropod"], 80, cwd=folder, env=environment
    )
    assert code == 0
    assert "Traceback" not in written
    assert done("--help", environment={"COLUMNS": columns}).returncode == 0


def test_no_color_and_dumb_terminals_get_plain_text(folder):
    environment = {**os.environ, "TERM": "dumb"}
    code, written = on_terminal(
        [*PROGRAM, "info", "模型.neuropod"], 80, cwd=folder, env=environment
    )
    assert code == 0
    assert "\x1b" not in written


def test_a_package_cannot_steer_the_terminal_by_an_error(tmp_path):
    (tmp_path / "config.json").write_text('{"name": "\\u001b[2J", "platform": "no\\u001b[31m"}')
    ended = done("run", tmp_path)
    assert ended.returncode in (3, 4)
    assert r"\x1b" in ended.stderr
    assert "\x1b" not in ended.stderr


# Folders.


@pytest.mark.parametrize("home", ["/dev/null/home", "/proc/home", None])
def test_commands_need_no_home(folder, home):
    environment = {"HOME": home, "XDG_DATA_HOME": None, "XDG_CONFIG_HOME": None}
    for command in (["test", "模型.neuropod"], ["backends", "list"]):
        ended = done(*command, cwd=folder, environment=environment)
        assert (ended.returncode, ended.stderr) == (0, "")


def test_plots_need_no_home(folder, tmp_path):
    """The library that draws them says at length that its cache is temporary then."""
    environment = {"HOME": "/dev/null/home", "XDG_CONFIG_HOME": None, "XDG_CACHE_HOME": None}
    arguments = ["bench", "模型.neuropod", "--calls", "3", "--plot", tmp_path / "p.png"]
    ended = done(*arguments, cwd=folder, environment=environment)
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.parametrize("home", ["/dev/null/home", None])
def test_installing_without_a_home_says_what_to_do(home):
    environment = {"HOME": home, "XDG_DATA_HOME": None}
    ended = done("backends", "install", "torchscript", environment=environment)
    assert ended.returncode == 4
    assert ended.stderr.count("\n") == 1
    assert "--to DIR" in ended.stderr


def test_a_folder_that_cannot_be_written_to_is_enough_for_reading(folder):
    for name, *options in COMMANDS:
        options = [str(folder / o) if o.endswith(".npz") else o for o in options]
        ended = done(name, folder / "模型.neuropod", *options, cwd="/proc")
        assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.parametrize(
    ("command", "option"),
    [
        (["run", "-i", "in.npz", "-o", "out.npz"], "-o out.npz"),
        (["bench", "--calls", "1", "--plot", "p.png"], "--plot p.png"),
    ],
)
def test_a_target_that_cannot_be_written_is_refused_before_the_work(folder, command, option):
    name, *options = command
    options = [str(folder / o) if o == "in.npz" else o for o in options]
    ended = done(name, folder / "模型.neuropod", *options, cwd="/proc")
    assert ended.returncode == 2
    assert ended.stdout == ""
    assert ended.stderr.startswith(f"neuropod: error: {option}: can't write to .: ")


def test_a_folder_that_is_gone_is_no_traceback(folder, tmp_path):
    (tmp_path / "gone").mkdir()
    program = (
        f'cd "{tmp_path}/gone" && rmdir "{tmp_path}/gone" && "{sys.executable}" -m neuropod info x'
    )
    ended = subprocess.run(["bash", "-c", program], capture_output=True, text=True, check=False)
    assert ended.returncode == 3
    assert "Traceback" not in ended.stderr


def test_no_table_is_cut_whatever_the_width(tmp_path):
    """Columns of numbers with long headings, of which all but the narrowest terminals can break some."""
    script = tmp_path / "tables.py"
    script.write_text("""
import os
from neuropod.cli.output import print_table

columns = ["output", "rows that disagree", "max |A-B|", "same argmax", "NaN only A / only B / both"]
for width in range(30, 100):
    os.environ["COLUMNS"] = str(width)
    print_table("table", columns, [["y", "12,345 of 50,000", "0.25", "100.00 %", "none"]], columns[1:])
""")
    environment = {**os.environ, "TERM": "dumb"}
    code, written = on_terminal([sys.executable, script], 100, env=environment)
    assert code == 0
    for text in ("12,345 of 50,000", "0.25", "100.00 %", "none", "disagree", "argmax", "both"):
        assert written.count(text) >= 70, text
