"""Talks to the process of one package."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final

from neuropod import registry

_START: Final = (
    "import json, sys; sys.path[:] = json.loads(sys.argv.pop(1)); "
    "from neuropod.evaluation.worker import main; main()"
)
_LAST_LINES: Final = 5


class PackageFailedError(Exception):
    """The package couldn't be loaded or run, or its process died.

    `code`: the Neuropod error's, or "worker_died". `rows`: [start, stop) of the failed call, if one
    failed. `package`: which, where several run.
    """

    def __init__(
        self,
        message: str,
        code: str,
        rows: tuple[int, int] | None = None,
        package: Path | None = None,
    ) -> None:
        super().__init__(message)
        self.code, self.rows, self.package = code, rows, package


class WorkerProcess:
    """A fresh process for a package; ends with the block, whatever happens in it.

    folder: empty; gets the outputs and what the process prints.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._printed = folder / "stderr"
        reading, writing = os.pipe()
        try:
            with self._printed.open("wb") as printed:
                self._process = subprocess.Popen(
                    [sys.executable, "-c", _START, json.dumps(sys.path), str(folder), str(writing)],
                    stdin=subprocess.PIPE,
                    stdout=printed,
                    stderr=printed,
                    pass_fds=(writing,),
                )
        except BaseException:
            os.close(reading)
            raise
        finally:
            os.close(writing)
        self._answers: IO[str] = os.fdopen(reading)

    def request(self, do: str, **values: Any) -> dict[str, Any]:
        """Waits for the answer. Raises PackageFailedError."""
        stdin = self._process.stdin
        try:
            if stdin is not None:
                stdin.write(json.dumps({"do": do, **values}).encode() + b"\n")
                stdin.flush()
            line = self._answers.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise PackageFailedError(self._how_it_died(), "worker_died")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            rows = answer.get("rows")
            raise PackageFailedError(answer["error"], answer["code"], tuple(rows) if rows else None)
        return answer

    def load(self, package: str, options: Mapping[str, Any], **values: Any) -> dict[str, Any]:
        """Loads the package with the plug-ins that this process registered."""
        backends = [list(backend) for backend in registry.registered_backends()]
        return self.request(
            "load",
            package=package,
            load_options=dict(options),
            registered_backends=backends,
            **values,
        )

    def __enter__(self) -> "WorkerProcess":
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.wait()
        if self._process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):  # what was left to say to a dead process
                self._process.stdin.close()
        self._answers.close()

    def _how_it_died(self) -> str:
        status = self._process.wait()
        died = status < 0
        how = f"was killed by {signal.Signals(-status).name}" if died else f"exited with {status}"
        lines = self._printed.read_text(errors="replace").strip().splitlines()[-_LAST_LINES:]
        printed = f"; it printed last: {' | '.join(lines)}" if lines else "; it printed nothing"
        return f"its process {how}{printed}"
