"""Running the command line: in this process, and as a process of its own."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from neuropod.cli.main import main

PROGRAM = [sys.executable, "-m", "neuropod"]


def outputs(capsys, *arguments):
    """What `neuropod run` prints as JSON."""
    assert main(["run", *map(str, arguments), "--json"]) == 0
    return json.loads(capsys.readouterr().out)["outputs"]


def start(*arguments, **options):
    return subprocess.Popen(
        [*PROGRAM, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def done(*arguments, text=True, **options):
    """Runs a command to its end. Keyword `environment` adds to the environment; None removes."""
    environment = {**os.environ, **options.pop("environment", {})}
    options["env"] = {name: value for name, value in environment.items() if value is not None}
    return subprocess.run(
        [*PROGRAM, *map(os.fspath, arguments)],
        capture_output=True,
        text=text,
        check=False,
        timeout=60,
        **options,
    )


def wait_for_plugin(process, platform="echo"):
    """Until the process has loaded the plug-in."""
    while f"/backends/{platform}/" not in Path(f"/proc/{process.pid}/maps").read_text():
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.01)


def wait_for_threads(process, number):
    """Until the process has that many threads."""
    while len(list(Path(f"/proc/{process.pid}/task").iterdir())) < number:
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.01)


def ended_by(process, number=signal.SIGINT):
    """Sends the signal; returns (exit code, stdout, stderr). Fails if the process goes on."""
    process.send_signal(number)
    try:
        out, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    return process.returncode, out, errors
