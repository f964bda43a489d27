"""Every exit code, provoked; and signals to real processes in the middle of a call."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from echo_packager import ADDITION, create_echo_neuropod
from processes import done, ended_by, start, wait_for_plugin
from test_cli import failed

from neuropod.cli import main as entry
from neuropod.cli.exit_codes import MEANINGS, ExitCode, exit_code_of
from neuropod.errors import ERROR_CLASSES, InferenceTimeoutError, WorkerDiedError


@pytest.fixture
def slow(tmp_path):
    """Sleeps for ten minutes in native code."""
    create_echo_neuropod(neuropod_path=tmp_path / "slow", model={"sleep_ms": 600_000}, **ADDITION)
    return tmp_path / "slow"


class Failing:
    """A command that fails as one day a worker will."""

    def __init__(self, error):
        self.error = error

    def add_parser(self, commands, common):
        commands.add_parser("fail", parents=[common]).set_defaults(command=self.run)

    def run(self, args):
        raise self.error


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (WorkerDiedError("worker of 'm' was killed by SIGSEGV"), 5),
        (InferenceTimeoutError("no answer within 1 s"), 5),
        (KeyboardInterrupt(), 130),
        (OSError(28, "No space left on device", "/full/out.npz"), 2),
    ],
)
def test_a_command_that_raises_gives_the_code_of_its_error(capsys, monkeypatch, error, code):
    monkeypatch.setattr(entry, "_COMMANDS", (Failing(error),))
    found, message = failed(capsys, "fail")
    assert found == code
    expected = "interrupted" if code == 130 else str(error.args[-1])
    assert expected.removeprefix("Neuropod Error: ") in message


def test_every_error_code_has_an_exit_code():
    by_exit_code = {}
    for code in ERROR_CLASSES:
        by_exit_code.setdefault(int(exit_code_of(code)), set()).add(code)
    assert by_exit_code == {
        1: {"model_error", "out_of_memory", "unavailable", "cancelled"},
        2: {"invalid_argument", "spec_mismatch", "not_found"},
        3: {"invalid_package", "corrupt_package"},
        4: {"backend_not_found", "version_conflict", "load_failed"},
        5: {"worker_died", "timeout"},
    }


def test_help_and_the_documentation_list_the_same_codes(capsys):
    with pytest.raises(SystemExit) as exit_:
        entry.main(["--help"])
    assert exit_.value.code == 0
    shown = capsys.readouterr().out
    page = (Path(__file__).parents[3] / "docs" / "cli.md").read_text()
    for code, text in MEANINGS.items():
        assert f"  {code:<4d}{text}\n" in shown
        assert f"| {code:d} | {text} |" in page
    assert set(MEANINGS) == set(ExitCode)


@pytest.mark.parametrize(
    ("number", "code", "cause"),
    [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")],
)
def test_a_signal_ends_a_call_that_would_take_long(slow, inputs, number, code, cause):
    process = start("run", slow, "-i", inputs)
    wait_for_plugin(process)
    returned, out, errors = ended_by(process, number)
    assert (returned, out, errors) == (code, "", f"neuropod: error: {cause}\n")


def test_a_signal_between_calls_removes_temporary_files(tmp_path):
    program = (
        "import signal, sys, tempfile; from neuropod.cli.interrupts import ending_on_signals\n"
        f"with ending_on_signals(), tempfile.TemporaryDirectory(dir={str(tmp_path)!r}) as folder:\n"
        "    print(folder, flush=True)\n"
        "    signal.pause()\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    folder = Path(process.stdout.readline().strip())
    assert folder.is_dir()
    _, _, errors = ended_by(process, signal.SIGTERM)
    assert "Terminated" in errors
    assert not folder.exists()


def test_an_ignored_signal_stays_ignored(tmp_path, inputs):
    """As under nohup, or in the background of a script."""
    create_echo_neuropod(neuropod_path=tmp_path / "slow", model={"sleep_ms": 1500}, **ADDITION)
    process = start(
        "run",
        tmp_path / "slow",
        "-i",
        inputs,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    )
    wait_for_plugin(process)
    returned, out, errors = ended_by(process)
    assert (returned, errors) == (0, "")
    assert "[0. 2. 4.]" in out


def test_a_full_disk_is_one_line(addition):
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(
            [sys.executable, "-m", "neuropod", "info", addition],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert ended.returncode == 2
    assert ended.stderr == "neuropod: error: No space left on device\n"


def test_a_closed_stdout_is_no_error(addition):
    command = f'"{sys.executable}" -m neuropod info "{addition}" >&-'
    ended = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_a_closed_stderr_takes_errors_to_nowhere(addition, tmp_path):
    """Also those of processes, and of what the library logs; and no file gets the free number."""
    data = tmp_path / "data.csv"
    data.write_text("x,y\n1,2\n")
    for command, code in ((f'evaluate "{addition}" --data "{data}"', 0), ("info nothing", 3)):
        line = f'"{sys.executable}" -m neuropod {command} 2>&-'
        ended = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
        assert ended.returncode == code, ended.stdout
        assert "error" not in ended.stdout


def test_a_package_that_is_no_package_is_3_in_a_process(tmp_path):
    ended = done("info", tmp_path / "missing")
    assert (ended.returncode, ended.stdout) == (3, "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "p", "--threads", "0"], "--threads: expected a whole number from 1, but is '0'"),
        (["run", "p", "--device", "tpu"], "--device: 'tpu' is no device; expected cpu, or a GPU's"),
        (["test", "p", "--rtol", "x"], "--rtol: expected a number, but is 'x'"),
        (
            ["bench", "p", "--threads", "1,,2"],
            "--threads: expected a whole number from 1, but is ''",
        ),
        (["bench", "p", "--seed", "-1"], "--seed: expected a whole number from 0, but is '-1'"),
        (["bench", "p", "--seconds", "nan"], "--seconds: expected a number, but is 'nan'"),
    ],
)
def test_a_number_that_does_not_fit_is_named(capsys, arguments, message):
    code, shown = failed(capsys, *arguments)
    assert code == 2
    assert message in shown


@pytest.mark.parametrize("command", ["run", "test", "bench"])
def test_a_key_that_is_not_there_is_no_fault_of_the_package(capsys, addition, command):
    code, message = failed(capsys, command, addition, "--require-signature", "missing.pem")
    assert code == 2
    assert "missing.pem" in message


def test_starting_imports_nothing_that_is_not_needed():
    program = (
        "import sys; from neuropod.cli.main import make_parser; make_parser(); "
        "print(sorted({'numpy', 'rich', 'PIL', 'matplotlib', 'shtab', 'neuropod._native', "
        "'neuropod.packaging', 'neuropod.backend_installer', 'importlib.metadata', 'torch'} "
        "& set(sys.modules)))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert ended.stdout == "[]\n"


def test_the_documentation_lists_every_command():
    page = (Path(__file__).parents[3] / "docs" / "cli.md").read_text()
    (commands,) = (a for a in entry.make_parser()._actions if hasattr(a, "choices") and a.choices)
    assert [name for name in commands.choices if f"| `neuropod {name}" not in page] == []
