"""Models for the tests of metrics, made by hand for the echo platform."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import neuropod

Writer = Callable[..., Path]


@pytest.fixture
def write_package(tmp_path: Path) -> Writer:
    """`write_package(name, **echo)`: a package with y = x, float32 (n); `echo`: more of echo.json."""

    def write(name: str = "identity", **echo: Any) -> Path:
        folder = tmp_path / f"package_{len(list(tmp_path.iterdir()))}"
        (folder / "0" / "data").mkdir(parents=True)
        spec = {"dtype": "float32", "shape": ["n"]}
        config = {
            "name": name,
            "platform": "echo",
            "format_version": 1,
            "input_spec": [{"name": "x", **spec}],
            "output_spec": [{"name": "y", **spec}],
        }
        model = {"outputs": {"y": {"op": "identity", "input": "x"}}, **echo}
        (folder / "config.json").write_text(json.dumps(config))
        (folder / "0" / "data" / "echo.json").write_text(json.dumps(model))
        return folder

    return write


@pytest.fixture
def model(write_package: Writer) -> Iterator[neuropod.Neuropod]:
    """y = x, which fails for a negative first element."""
    path = write_package(fail_if_negative={"input": "x", "message": "negative"})
    with neuropod.load_neuropod(path) as loaded:
        yield loaded


@pytest.fixture
def remote_model(write_package: Writer) -> Iterator[neuropod.Neuropod]:
    """The same in a process of its own; a call takes 20 ms."""
    path = write_package(fail_if_negative={"input": "x", "message": "negative"}, sleep_ms=20)
    with neuropod.load_neuropod(path, use_ope=True) as loaded:
        yield loaded


@pytest.fixture(autouse=True)
def no_callback() -> Iterator[None]:
    yield
    neuropod.set_metrics_callback(None)
