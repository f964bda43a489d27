"""Running a package in a fresh process, as its users will."""

import importlib
import json
import pickle
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from neuropod import registry
from neuropod.errors import InvalidArgumentError, NeuropodError
from neuropod.packaging.comparison import check_outputs
from neuropod.packaging.errors import SelfTestError

# The child sees the modules that this process would import, then runs the module's main().
_START: Final = (
    "import json, sys; sys.path[:] = json.loads(sys.argv.pop(1)); "
    "from neuropod.packaging.self_test_process import main; main()"
)
_STDERR_LINES: Final = 15


def run_self_test(
    package: str | Path,
    inputs: Mapping[str, Any] | None,
    expected: Mapping[str, Any] | None,
    load_arguments: Mapping[str, Any],
) -> dict[str, Any]:
    """Loads and runs the package once in a fresh process and compares what it returns.

    Without inputs it is only loaded, which finds what the backend checks then.

    Returns the outputs. Raises what loading or running raised, or SelfTestError (a ValueError) if
    outputs differ or the process died.
    """
    outputs = run_in_fresh_process(package, inputs, load_arguments)
    if expected is not None:
        check_outputs(outputs, expected)
    return outputs


def run_in_fresh_process(
    package: str | Path,
    inputs: Mapping[str, Any] | None,
    load_arguments: Mapping[str, Any],
    interpreter: str = sys.executable,
    interpreter_options: Sequence[str] = (),
) -> dict[str, Any]:
    """Runs `load_neuropod(package, **load_arguments).infer(inputs)` in a process of its own.

    What the model prints is shown only if the run fails. Raises the error that the process met, with
    its class and text; SelfTestError if it died.
    """
    with tempfile.TemporaryDirectory(prefix="neuropod-test-") as folder:
        exchange = Path(folder)
        _write_request(exchange, package, inputs, load_arguments)
        with (exchange / "stderr").open("wb") as stderr:
            child = subprocess.run(
                [interpreter, *interpreter_options, "-c", _START, _path_as_json(), folder],
                stdin=subprocess.DEVNULL,
                stdout=stderr,
                stderr=stderr,
                check=False,
            )
        return _read_response(exchange, child.returncode)


def _path_as_json() -> str:
    return json.dumps(sys.path)


def _write_request(
    exchange: Path,
    package: str | Path,
    inputs: Mapping[str, Any] | None,
    load_arguments: Mapping[str, Any],
) -> None:
    request = {
        "package": str(package),
        "inputs": None if inputs is None else dict(inputs),
        "load_arguments": _portable(load_arguments),
        "registered_backends": registered_backends(),
    }
    with (exchange / "request").open("wb") as file:
        try:
            pickle.dump(request, file)
        except (pickle.PicklingError, TypeError, AttributeError) as error:
            raise InvalidArgumentError(
                f"neuropod_load_args can't be handed to a fresh process: {error}"
            ) from error


def _portable(load_arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments with plug-ins as plain tuples, which another process takes too."""
    result = dict(load_arguments)
    if result.get("backend_overrides"):
        result["backend_overrides"] = [
            (spec.type, spec.version, spec.path) if hasattr(spec, "path") else tuple(spec)
            for spec in result["backend_overrides"]
        ]
    return result


def registered_backends() -> list[Any]:
    """The plug-ins that this process registered, for the child to know them too."""
    return [tuple(backend) for backend in registry.registered_backends()]


def _read_response(exchange: Path, status: int) -> dict[str, Any]:
    response = exchange / "response"
    if status != 0 or not response.is_file():
        printed = _last_lines((exchange / "stderr").read_bytes())
        raise SelfTestError(f"the process that ran the model {_how_it_ended(status)}{printed}")
    with response.open("rb") as file:
        content = pickle.load(file)
    error = content.get("error")
    if error is not None:
        raise _same_error(error)
    return dict(content["outputs"])


def _how_it_ended(status: int) -> str:
    if status >= 0:
        return f"exited with {status}"
    try:
        name = signal.Signals(-status).name
    except ValueError:
        name = str(-status)
    return f"was killed by signal {name}"


def _last_lines(printed: bytes) -> str:
    lines = printed.decode(errors="replace").strip().splitlines()[-_STDERR_LINES:]
    return "; it printed nothing" if not lines else "; it printed last:\n" + "\n".join(lines)


def _same_error(error: Mapping[str, str]) -> NeuropodError:
    """The child's error in its own class, or SelfTestError for a class that isn't ours."""
    module = importlib.import_module(error["module"]) if _is_ours(error["module"]) else None
    error_class = getattr(module, error["class"], None)
    if isinstance(error_class, type) and issubclass(error_class, NeuropodError):
        result: NeuropodError = error_class(error["message"].removeprefix("Neuropod Error: "))
    else:
        result = SelfTestError(f"{error['class']}: {error['message']}")
    result.add_note(f"in the process that ran the model:\n{error['traceback']}")
    return result


def _is_ours(module: str) -> bool:
    return module.split(".")[0] == "neuropod"
