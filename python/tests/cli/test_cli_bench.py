"""`neuropod bench`."""

import json
import os
import resource
import signal
import sys
import time

import numpy as np
import pytest
from echo_packager import ADDITION, create_echo_neuropod
from PIL import Image
from processes import done, ended_by, start, wait_for_threads
from test_cli import failed

from neuropod.cli.main import main
from neuropod.cli.random_inputs import random_inputs

QUICK = ["--calls", "20", "--warm-up", "2"]


def measured(capsys, *arguments):
    """What the command prints as JSON."""
    assert main(["bench", *map(str, arguments), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_latency_and_throughput_are_shown(capsys, addition):
    assert main(["bench", addition, "--seconds", "0.1"]) == 0
    shown = capsys.readouterr().out
    for text in ("p50", "p99", "max", "calls/s", "new blocks per call", "loaded in", "first call"):
        assert text in shown


def test_the_figures_fit_together(capsys, addition):
    package = measured(capsys, addition, *QUICK)["packages"][0]
    (run,) = package["runs"]
    latency = run["latency_seconds"]
    assert run["calls"] == 20
    assert run["complete"]
    ordered = [latency[name] for name in ("min", "p50", "p90", "p95", "p99", "max")]
    assert ordered == sorted(ordered)
    assert latency["min"] <= latency["mean"] <= latency["max"]
    assert run["calls_per_second"] == pytest.approx(20 / run["seconds"])
    assert run["new_blocks"] + run["reused_blocks"] == 20


def test_every_number_of_threads_is_measured(capsys, addition):
    runs = measured(capsys, addition, "--threads", "1,2,4", *QUICK)["packages"][0]["runs"]
    assert [(run["threads"], run["calls"]) for run in runs] == [(1, 20), (2, 40), (4, 80)]


def test_a_call_longer_than_the_time_is_measured_whole(capsys, tmp_path):
    create_echo_neuropod(neuropod_path=tmp_path / "slow", model={"sleep_ms": 100}, **ADDITION)
    (run,) = measured(capsys, tmp_path / "slow", "--seconds", "0.05", "--warm-up", "0")["packages"][
        0
    ]["runs"]
    assert run["calls"] == 1
    assert run["seconds"] >= run["latency_seconds"]["max"] >= 0.1


def test_inputs_come_from_test_data_files_or_the_specs(capsys, tmp_path, addition, inputs):
    x = np.ones(5, "float32")
    create_echo_neuropod(
        neuropod_path=tmp_path / "tested", test_input_data={"x": x, "y": x}, **ADDITION
    )
    for arguments, source, size in (
        ([tmp_path / "tested"], "test data", 5),
        ([tmp_path / "tested", "--random"], "random", 1),
        ([tmp_path / "tested", "-i", inputs], "files", 3),
        ([addition], "random", 1),
        ([addition, "--size", "batch_size=8"], "random", 8),
    ):
        package = measured(capsys, *arguments, *QUICK)["packages"][0]
        assert package["inputs_from"] == source
        assert package["inputs"] == {"x": [size], "y": [size]}


def test_packages_are_compared(capsys, tmp_path, addition):
    create_echo_neuropod(neuropod_path=tmp_path / "other", **ADDITION)
    assert main(["bench", addition, str(tmp_path / "other"), *QUICK]) == 0
    shown = capsys.readouterr().out
    assert "p50 ratio" in shown
    assert "addition.neuropod " in shown
    assert "1.00" in shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--size", "batch=8"], "did you mean 'batch_size'"),
        (["--size", "x"], "expected NAME=N"),
        (["--size", "batch_size=-1"], "expected NAME=N"),
        (["--size", "batch_size=9000000000000000"], "doesn't fit into memory"),
        (["--threads", "0"], "--threads"),
        (["--threads", "1,x"], "--threads"),
        (["--seconds", "0"], "--seconds"),
        (["--seconds", "nan"], "--seconds"),
        (["--calls", "0"], "--calls"),
        (["--warm-up", "-1"], "--warm-up"),
        (["--plot", "x.pdf"], ".png or .svg"),
        (["--plot", "no/such/x.png"], "does not exist"),
        (["--random", "-i", "x.npz"], "give one"),
    ],
)
def test_what_cannot_be_measured_is_said(capsys, addition, arguments, message):
    code, shown = failed(capsys, "bench", addition, *arguments)
    assert code == 2
    assert message in shown


def test_a_package_that_is_not_there_is_3(capsys, tmp_path):
    code, message = failed(capsys, "bench", tmp_path / "missing")
    assert code == 3
    assert "missing" in message


@pytest.mark.parametrize("threads", ["1", "3"])
def test_a_model_that_fails_ends_all_threads_with_1(capsys, tmp_path, threads):
    model = {"fail_if_negative": {"input": "x", "message": "too cold"}}
    create_echo_neuropod(neuropod_path=tmp_path / "a", model=model, **ADDITION)
    (tmp_path / "x.json").write_text('{"x": [-1], "y": [1]}')
    code, message = failed(
        capsys, "bench", tmp_path / "a", "-i", tmp_path / "x.json", "--threads", threads
    )
    assert code == 1
    assert "too cold" in message


def test_what_was_measured_before_a_package_failed_is_shown(capsys, tmp_path, addition):
    code = main(["bench", addition, str(tmp_path / "missing"), *QUICK])
    captured = capsys.readouterr()
    assert code == 3
    assert "p50" in captured.out
    assert "missing" in captured.err


def test_an_error_in_a_measuring_thread_is_raised_where_it_can_be_handled(addition):
    import threading

    from neuropod import ModelError, load_neuropod
    from neuropod.cli.measurement import Load, measure

    class FailsAtLast:
        """A model whose fortieth call fails."""

        def __init__(self, model):
            self.model, self.left = model, 40
            self.allocator_stats = model.allocator_stats

        def infer(self, inputs):
            self.left -= 1
            if self.left < 0:
                raise ModelError("worn out")
            return self.model.infer(inputs)

    x = np.ones(2, "float32")
    before = threading.active_count()
    with load_neuropod(addition) as model, pytest.raises(ModelError, match="worn out"):
        measure(FailsAtLast(model), {"x": x, "y": x}, Load(3, 60.0, None, 1))
    assert threading.active_count() == before


# Interruption.


def test_an_interruption_shows_what_was_measured(tmp_path):
    create_echo_neuropod(neuropod_path=tmp_path / "a", model={"sleep_ms": 20}, **ADDITION)
    arguments = ["--seconds", "600", "--threads", "5", "--warm-up", "0", "--json"]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    process = start("bench", tmp_path / "a", *arguments, env=environment)
    wait_for_threads(process, 7)  # the main one, the one that waits for signals, the callers
    time.sleep(1)
    code, out, errors = ended_by(process)
    assert (code, errors) == (130, "neuropod: error: interrupted\n")
    shown = json.loads(out)
    assert not shown["complete"]
    (run,) = shown["packages"][0]["runs"]
    assert not run["complete"]
    assert run["calls"] > 0


def test_an_interruption_does_not_wait_for_a_call_that_hangs(tmp_path):
    """The first call is short, the others sleep."""
    program = (
        "import sys, time; from neuropod.cli import main, measurement\n"
        "from neuropod.executor import Neuropod\n"
        "infer, calls = Neuropod.infer, []\n"
        "def hang(self, inputs, requested=None):\n"
        "    calls.append(1)\n"
        "    if len(calls) == 5: print('hanging', file=sys.stderr, flush=True); time.sleep(600)\n"
        "    return infer(self, inputs, requested)\n"
        "Neuropod.infer = hang\n"
        "sys.exit(main.main())\n"
    )
    create_echo_neuropod(neuropod_path=tmp_path / "a", **ADDITION)
    import subprocess

    process = subprocess.Popen(
        [sys.executable, "-c", program, "bench", tmp_path / "a", "--warm-up", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr.readline() == "hanging\n"
    code, out, errors = ended_by(process, signal.SIGINT)
    assert (code, errors) == (130, "neuropod: error: interrupted\n")
    assert "interrupted: the last line is of the calls that had ended" in out


# Plots.


@pytest.mark.parametrize("threads", ["1", "1,2"])
def test_a_plot_is_a_picture(addition, tmp_path, threads):
    assert (
        main(["bench", addition, *QUICK, "--threads", threads, "--plot", f"{tmp_path}/p.png"]) == 0
    )
    with Image.open(tmp_path / "p.png") as picture:
        assert picture.size[0] == 960 * (1 + threads.count(","))
    assert main(["bench", addition, *QUICK, "--plot", f"{tmp_path}/p.svg"]) == 0
    assert "</svg>" in (tmp_path / "p.svg").read_text()


def test_without_matplotlib_the_extra_is_named(capsys, addition, tmp_path, monkeypatch):
    import importlib.util

    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "matplotlib" else find(name)
    )
    code, message = failed(capsys, "bench", addition, "--plot", tmp_path / "p.png")
    assert code == 2
    assert "pip install 'neuropod[plots]'" in message


# Random inputs.


def test_random_inputs_obey_the_specs_and_the_seed():
    specs = [
        {"name": dtype, "dtype": dtype, "shape": ["n", None, 2]}
        for dtype in ("float32", "bfloat16", "int64", "uint8", "bool", "complex64", "string")
    ]
    specs.append({"name": "maybe", "dtype": "int8", "shape": [1], "optional": True})
    specs.append({"name": "single", "dtype": "float64", "shape": []})
    sizes = {"n": 4, **{f"{spec['name']}[1]": 3 for spec in specs}}
    inputs = random_inputs(specs, sizes, seed=1)
    assert "maybe" not in inputs
    assert inputs["single"].shape == ()
    for spec in specs[:-2]:
        array = inputs[spec["name"]]
        assert array.shape == (4, 3, 2)
        assert spec["dtype"] in ("string", str(array.dtype))
    again = random_inputs(specs, sizes, seed=1)
    assert all((again[name] == array).all() for name, array in inputs.items())
    assert (random_inputs(specs, sizes, seed=2)["float32"] != inputs["float32"]).any()


def test_more_threads_than_the_system_has_are_refused(addition):
    """Their stacks are address space, of which this process gets little."""
    limit = 4 << 30
    ended = done(
        *("bench", addition, "--threads", "1,3000", "--calls", "1"),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
    )
    assert ended.returncode == 2
    assert "--threads 3000: the system allows no more than " in ended.stderr
    assert ended.stderr.count("\n") == 1
    assert "calls/s" in ended.stdout  # what one thread gave isn't lost
