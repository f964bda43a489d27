"""The process of one package: loads it, runs it on prepared columns, measures.

It is told what to do by lines of JSON on stdin and answers each with one on the descriptor that
`sys.argv[2]` names; `sys.argv[1]` is the folder where outputs go. The end of stdin ends it. What the
model prints goes to stderr.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neuropod.errors import NeuropodError

if TYPE_CHECKING:
    from neuropod.evaluation.batching import BatchPlan
    from neuropod.evaluation.columns import Column, ColumnFolder
    from neuropod.executor import Neuropod


class Worker:
    """Answers requests by method: load, warm_up, run, finish."""

    _model: "Neuropod"
    _plan: "BatchPlan"
    _inputs: "dict[str, Column]"

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._outputs: ColumnFolder | None = None
        self._calls: list[tuple[int, int]] = []
        self._wanted: list[str] = []

    def load(self, request: dict[str, Any]) -> dict[str, Any]:
        """Loads the package. Answers how many calls the data take."""
        from neuropod import load_neuropod, registry
        from neuropod.evaluation.batching import BatchPlan
        from neuropod.evaluation.columns import ColumnFolder, columns_from_json

        for backend in request["registered_backends"]:
            registry.register_backend(*backend)
        start = time.perf_counter()
        self._model = load_neuropod(request["package"], **request["load_options"])
        seconds = time.perf_counter() - start
        known = {spec["name"] for spec in self._model.inputs}
        columns = columns_from_json(request["columns"])
        self._inputs = {name: column for name, column in columns.items() if name in known}
        self._wanted = request["outputs"]
        self._plan = BatchPlan.of(self._model.inputs, self._model.outputs, self._inputs)
        self._calls = list(self._plan.calls(self._inputs, request["batch_size"]))
        self._outputs = ColumnFolder(self._folder)
        return {
            "load_seconds": seconds,
            "calls": len(self._calls),
            "platform": self._model.platform,
            "batch_symbol": self._plan.symbol,
        }

    def warm_up(self, request: dict[str, Any]) -> dict[str, Any]:
        """Runs the first and the last call, which may be shorter, a few times; makes a stateful model
        forget them."""
        for _ in range(request["times"]):
            for rows in (self._calls[0], self._calls[-1]):
                inputs = self._plan.feed(self._inputs, *rows)
                try:
                    self._model.infer(inputs, self._wanted)
                except NeuropodError as error:
                    return _error_answer(error, rows=rows)
        if self._model.config.get("stateful"):
            self._model.reset()
        return {}

    def run(self, request: dict[str, Any]) -> dict[str, Any]:
        """Runs calls [first, last); keeps the outputs if asked for."""
        nanoseconds, cpu = [], 0.0
        for start, stop in self._calls[request["first"] : request["last"]]:
            inputs = self._plan.feed(self._inputs, start, stop)
            cpu_start, call_start = time.process_time(), time.perf_counter_ns()
            try:
                outputs = self._model.infer(inputs, self._wanted)
            except NeuropodError as error:
                return _error_answer(error, rows=[start, stop])
            nanoseconds.append(time.perf_counter_ns() - call_start)
            cpu += time.process_time() - cpu_start
            if request["keep"] and self._outputs is not None:
                self._outputs.append(self._plan.split(outputs, stop - start))
        bounds = self._calls[request["first"] : request["last"]]
        rows = sum(stop - start for start, stop in bounds)
        return {"nanoseconds": nanoseconds, "cpu_seconds": cpu, "rows": rows}

    def finish(self, _: dict[str, Any]) -> dict[str, Any]:
        """Writes the outputs out. Answers where they are and the peak of memory."""
        from neuropod.evaluation.columns import columns_to_json
        from neuropod.evaluation.resources import peak_memory

        columns = self._outputs.close() if self._outputs is not None else {}
        return {"columns": columns_to_json(columns), "peak_memory": peak_memory()}


def main() -> None:
    """Serves until stdin ends."""
    # Ctrl-C goes to every process of the terminal; who started this one ends it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    worker = Worker(Path(sys.argv[1]))
    with os.fdopen(int(sys.argv[2]), "w") as answers:
        for line in sys.stdin:
            request = json.loads(line)
            try:
                answer = getattr(worker, request["do"])(request)
            except NeuropodError as error:
                answer = _error_answer(error)
            except Exception as error:
                answer = {"error": f"{type(error).__name__}: {error}", "code": "model_error"}
            answers.write(json.dumps(answer) + "\n")
            answers.flush()


def _error_answer(error: NeuropodError, **more: Any) -> dict[str, Any]:
    return {"error": error.message, "code": error.code, **more}


if __name__ == "__main__":
    main()
