"""The fresh process of the self-test: loads the package, runs it if there are inputs, reports."""

import pickle
import sys
import traceback
from pathlib import Path
from typing import Any


def main() -> None:
    """`sys.argv[1]`: the folder that holds `request` and gets `response`."""
    exchange = Path(sys.argv[1])
    with (exchange / "request").open("rb") as file:
        request = pickle.load(file)
    try:
        response: dict[str, Any] = {"outputs": _run(request)}
    except Exception as error:
        response = {
            "error": {
                "module": type(error).__module__,
                "class": type(error).__qualname__,
                "message": str(error),
                "traceback": traceback.format_exc(),
            }
        }
    with (exchange / "response.partial").open("wb") as file:
        pickle.dump(response, file)
    (exchange / "response.partial").rename(exchange / "response")


def _run(request: dict[str, Any]) -> dict[str, Any]:
    from neuropod import load_neuropod, registry

    for spec in request["registered_backends"]:
        registry.register_backend(*spec)
    with load_neuropod(request["package"], **request["load_arguments"]) as model:
        return {} if request["inputs"] is None else dict(model.infer(request["inputs"]))
