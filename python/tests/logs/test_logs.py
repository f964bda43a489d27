"""Where log lines go, how they look, and that they disturb nothing."""

import json
import logging
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import neuropod

Line = tuple[str, str, str, int, float]


@pytest.fixture(autouse=True)
def as_it_was() -> Iterator[None]:
    yield
    neuropod.set_log_sink(None)
    neuropod.set_log_level("INFO")
    neuropod.set_log_format("text")


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """y = x, float32 (n), on the echo platform; a device that isn't there is a debug line."""
    folder = tmp_path / "package"
    (folder / "0" / "data").mkdir(parents=True)
    spec = {"dtype": "float32", "shape": ["n"]}
    config = {
        "name": "identity",
        "platform": "echo",
        "format_version": 1,
        "input_spec": [{"name": "x", **spec}],
        "output_spec": [{"name": "y", **spec}],
    }
    model = {
        "outputs": {"y": {"op": "identity", "input": "x"}},
        "fail_if_negative": {"input": "x", "message": "negative"},
    }
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "0" / "data" / "echo.json").write_text(json.dumps(model))
    return folder


def load_with_a_debug_line(package: Path) -> neuropod.Neuropod:
    neuropod.set_log_level("DEBUG")
    return neuropod.load_neuropod(package)


def lines_of(text: str, message: str) -> list[str]:
    return [line for line in text.splitlines() if message in line]


MESSAGE = 'there is no device 0 here, "GPU" means the CPU'


def test_a_sink_gets_the_lines_instead_of_stderr(
    package: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    lines: list[Line] = []
    neuropod.set_log_sink(lambda *line: lines.append(line))
    load_with_a_debug_line(package)
    assert capfd.readouterr() == ("", "")
    (line,) = [line for line in lines if MESSAGE in line[1]]
    level, message, file, number, time = line
    assert level == "DEBUG"
    assert message.startswith("model 'identity': ")
    assert file.endswith("neuropod_backend.cc") and not file.startswith("/")
    assert number > 0 and time > 1.7e9

    neuropod.set_log_sink(None)
    load_with_a_debug_line(package)
    captured = capfd.readouterr()
    assert captured.out == "" and MESSAGE in captured.err


def test_a_sink_that_raises_loses_no_line(package: Path, capfd: pytest.CaptureFixture[str]) -> None:
    def broken(*line: object) -> None:
        raise RuntimeError("no connection")

    neuropod.set_log_sink(broken)
    load_with_a_debug_line(package).infer({"x": np.ones(1, "float32")})
    load_with_a_debug_line(package)
    text = capfd.readouterr().err
    assert len(lines_of(text, MESSAGE)) == 2
    assert len(lines_of(text, "the log sink threw: RuntimeError: no connection")) == 1


def test_a_sink_that_logs_does_not_recurse(
    package: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    calls = []

    def sink(*line: object) -> None:
        calls.append(line)
        neuropod.load_neuropod(package)

    neuropod.set_log_sink(sink)
    load_with_a_debug_line(package)
    assert calls
    assert len(lines_of(capfd.readouterr().err, MESSAGE)) == len(calls)


def test_lines_can_go_to_pythons_logging(package: Path, caplog: pytest.LogCaptureFixture) -> None:
    logger = logging.getLogger("neuropod")

    def sink(level: str, message: str, file: str, line: int, time: float) -> None:
        number = {"TRACE": 5, "WARN": logging.WARNING}.get(level) or getattr(logging, level)
        logger.handle(logger.makeRecord("neuropod", number, file, line, message, (), None))

    neuropod.set_log_sink(sink)
    with caplog.at_level(logging.DEBUG, logger="neuropod"):
        load_with_a_debug_line(package)
    (record,) = [record for record in caplog.records if MESSAGE in record.message]
    assert record.levelno == logging.DEBUG
    assert record.filename == "neuropod_backend.cc"


def test_json_lines_can_be_parsed(package: Path, capfd: pytest.CaptureFixture[str]) -> None:
    neuropod.set_log_format("json")
    load_with_a_debug_line(package)
    lines = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
    (line,) = [line for line in lines if MESSAGE in line["message"]]
    assert line["level"] == "DEBUG"
    assert list(line) == ["time", "level", "message", "file", "line", "thread", "process"]
    assert line["process"] == os.getpid()


@pytest.mark.parametrize(
    ("function", "known"),
    [
        (neuropod.set_log_level, "TRACE, DEBUG, INFO, WARN, ERROR"),
        (neuropod.set_log_format, "text, json"),
    ],
)
def test_an_unknown_name_is_refused_with_those_there_are(
    function: Callable[[str], None], known: str
) -> None:
    with pytest.raises(neuropod.InvalidArgumentError, match=f"'loud' is no log .*{known}"):
        function("loud")


@pytest.mark.parametrize("setter", [neuropod.set_log_sink, neuropod.set_metrics_callback])
def test_what_cannot_be_called_is_refused(setter: Callable[[object], None]) -> None:
    with pytest.raises(neuropod.InvalidArgumentError, match="a function or None, but is a str"):
        setter("print")


def run(script: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, **environment},
    )


SESSION = """
    import sys
    import numpy as np
    import neuropod

    ones = np.ones(4, "float32")
    for options in ({{}}, {{"collect_metrics": False}}):
        with neuropod.load_neuropod({package!r}, **options) as model:
            model.infer({{"x": ones}})
            for inputs in ({{"x": -ones}}, {{"z": ones}}, {{}}):
                try:
                    model.infer(inputs)
                    sys.exit("no error")
                except neuropod.NeuropodError:
                    pass
            repr(model), model.stats()
    for path in ("/nowhere", __file__ if "__file__" in globals() else "/dev/null"):
        try:
            neuropod.load_neuropod(path)
            sys.exit("no error")
        except neuropod.NeuropodError:
            pass
    neuropod.metrics_text()
    neuropod.set_metrics_callback(lambda record: 1 / 0)
    with neuropod.load_neuropod({package!r}) as model:
        model.infer({{"x": ones}})
"""


@pytest.mark.parametrize("format", ["text", "json"])
def test_a_whole_session_writes_nothing_to_stdout(package: Path, format: str) -> None:
    done = run(
        SESSION.format(package=str(package)),
        NEUROPOD_LOG_LEVEL="TRACE",
        NEUROPOD_LOG_FORMAT=format,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert "opened plug-in" in done.stderr
    assert "ZeroDivisionError" in done.stderr
    if format == "json":
        assert all(json.loads(line)["time"].endswith("Z") for line in done.stderr.splitlines())


def test_values_of_the_variables_that_are_none_are_warned_of_once(package: Path) -> None:
    done = run(
        SESSION.format(package=str(package)), NEUROPOD_LOG_LEVEL="loud", NEUROPOD_LOG_FORMAT="xml"
    )
    assert done.returncode == 0, done.stderr
    assert len(lines_of(done.stderr, "NEUROPOD_LOG_LEVEL is 'loud', which is no level")) == 1
    assert len(lines_of(done.stderr, "NEUROPOD_LOG_FORMAT is 'xml', which is no format")) == 1


def test_lines_while_the_interpreter_ends_go_to_stderr(package: Path) -> None:
    done = run(
        f"""
        import atexit

        # Handlers run in reverse, so this one comes after neuropod's own.
        atexit.register(lambda: neuropod.load_neuropod({str(package)!r}))

        import neuropod

        lines = []
        neuropod.set_log_level("DEBUG")
        neuropod.set_log_sink(lambda *line: lines.append(line))
        neuropod.load_neuropod({str(package)!r})
        assert lines
        """
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert len(lines_of(done.stderr, MESSAGE)) == 1
