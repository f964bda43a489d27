"""Models in processes of their own, from Python."""

import asyncio
import concurrent.futures
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import neuropod
from neuropod import InvalidArgumentError, Neuropod, OPEOptions, load_neuropod
from neuropod.cli import ps
from neuropod.workers import list_workers

SPEC = {"name": "x", "dtype": "float32", "shape": [None]}


def write_echo(folder: Path, **more: Any) -> Path:
    """y = 2 x, and what `more` says."""
    (folder / "0" / "data").mkdir(parents=True)
    config = {
        "name": "doubling",
        "platform": "echo",
        "input_spec": [SPEC],
        "output_spec": [SPEC | {"name": "y"}],
    }
    (folder / "config.json").write_text(json.dumps(config))
    model = {"outputs": {"y": {"op": "scale", "input": "x", "by": 2}}, **more}
    (folder / "0" / "data" / "echo.json").write_text(json.dumps(model))
    return folder


def failing(folder: Path, action: str) -> Path:
    return write_echo(folder, fail_if_negative={"input": "x", "action": action})


@pytest.fixture
def model(tmp_path: Path) -> Iterator[Neuropod]:
    with load_neuropod(write_echo(tmp_path / "echo"), use_ope=True) as loaded:
        yield loaded


def eventually(condition: Callable[[], bool]) -> bool:
    for _ in range(500):
        if condition():
            return True
        time.sleep(0.02)
    return False


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return "Z" in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2][:3]


ONES = np.ones(3, "float32")


def test_it_gives_the_same(model: Neuropod) -> None:
    np.testing.assert_array_equal(model.infer({"x": ONES})["y"], 2 * ONES)
    (worker,) = model.workers()
    assert worker["pid"] != os.getpid()
    assert worker["model"] == "doubling"
    assert worker["state"] == "ready"


def test_allocated_arrays_and_their_parts_are_not_copied(model: Neuropod) -> None:
    array = model.allocate("x", (1000,))
    array[:] = np.arange(1000)
    np.testing.assert_array_equal(model.infer({"x": array})["y"], 2 * array)
    np.testing.assert_array_equal(model.infer({"x": array[100:200]})["y"], 2 * array[100:200])
    assert model.stats()["copied_bytes"] == 0
    model.infer({"x": np.ones(1000, "float32")})
    assert model.stats()["copied_bytes"] == 4000


def test_allocate_refuses_what_it_cannot(model: Neuropod) -> None:
    with pytest.raises(neuropod.NotFoundError, match=r"'z'.*it has 'x'"):
        model.allocate("z", (1,))
    with pytest.raises(InvalidArgumentError):
        model.allocate("x", (-1,))


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"num_worker": 2}, "num_workers"),
        ({"timeout": 0}, "no deadline"),
        ({"timeout": "fast"}, "timeout"),
        ({"cpus": [4096]}, "may run on the CPUs"),
        ({"cpus": 3}, "a list of CPU numbers"),
        ({"retries": -1}, "retries"),
        ({"retries": True}, "retries"),
        ({"nice": 40}, "nice"),
        ({"memory_limit": 1000}, "memory_limit"),
        ({"spin": "often"}, "'auto', 'never', 'always'"),
        ({"env": {"A": 1}}, "env"),
        ({"env": {"A=B": "1"}}, "A=B"),
        ({"control_queue_name": "/s", "nice": 1}, "control_queue_name"),
        ({"control_queue_name": "/nonexistent/s"}, "neuropod-worker --listen"),
        ({"gpu": -1}, "gpu"),
        ({"startup_timeout": 0}, "startup_timeout"),
        ({"concurrency": 0}, "concurrency"),
        (3, "OPEOptions or a dict"),
    ],
)
def test_options_that_cannot_be_are_named(tmp_path: Path, options: Any, text: str) -> None:
    with pytest.raises(neuropod.NeuropodError, match=text):
        load_neuropod(write_echo(tmp_path / "echo"), use_ope=True, ope_options=options)


def test_limits_shape_the_worker(tmp_path: Path) -> None:
    options = OPEOptions(
        cpus=[min(os.sched_getaffinity(0))],
        nice=3,
        gpu="GPU-abc",
        env={"NEUROPOD_SEEN": "yes"},
        free_memory_every_cycle=True,
    )
    with load_neuropod(write_echo(tmp_path / "echo"), use_ope=True, ope_options=options) as model:
        pid = model.workers()[0]["pid"]
        assert os.sched_getaffinity(pid) == set(options.cpus)
        assert os.getpriority(os.PRIO_PROCESS, pid) == os.getpriority(os.PRIO_PROCESS, 0) + 3
        environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        assert b"CUDA_VISIBLE_DEVICES=GPU-abc" in environment
        assert b"NEUROPOD_SEEN=yes" in environment
        links = [str(fd.readlink()) for fd in Path(f"/proc/{pid}/fd").iterdir()]
        ours = [str(Path(f"/proc/self/fd/{fd}").readlink()) for fd in ("1", "2")]
        assert not set(ours) & set(links) - {"/dev/null"}


def test_ctrl_c_ends_a_call_and_the_model_stays_usable(tmp_path: Path) -> None:
    program = f"""
import os, signal, threading, time
import numpy as np
from neuropod import load_neuropod
model = load_neuropod({str(failing(tmp_path / "echo", "hang"))!r}, use_ope=True,
                      ope_options={{"kill_grace": 0.2}})
threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
begin = time.monotonic()
try:
    model.infer({{"x": -np.ones(1, "float32")}})
except KeyboardInterrupt:
    print("interrupted", round(time.monotonic() - begin, 3))
print(model.infer({{"x": np.ones(1, "float32")}})["y"][0])
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    first, second = done.stdout.splitlines()
    assert first.startswith("interrupted")
    assert second == "2.0"


def test_ctrl_c_ends_loading_and_leaves_no_worker(tmp_path: Path) -> None:
    program = f"""
import os, signal, threading, time
from neuropod import load_neuropod
threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
begin = time.monotonic()
try:
    load_neuropod({str(write_echo(tmp_path / "echo"))!r}, use_ope=True,
                  ope_options={{"env": {{"NEUROPOD_TEST_FAULT": "before_load:hang"}}}})
except KeyboardInterrupt:
    print(time.monotonic() - begin)
    print(open(f"/proc/self/task/{{os.getpid()}}/children").read().split())
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    seconds, children = done.stdout.splitlines()
    assert float(seconds) < 15, "startup_timeout is much longer"
    assert children == "[]"


def test_a_program_ends_although_an_asynchronous_call_hangs_past_its_timeout(
    tmp_path: Path,
) -> None:
    program = f"""
import numpy as np
from neuropod import load_neuropod
model = load_neuropod({str(failing(tmp_path / "echo", "hang"))!r}, use_ope=True,
                      ope_options={{"timeout": 0.3, "kill_grace": 30}})
model.infer_async({{"x": -np.ones(1, "float32")}})
"""
    subprocess.run([sys.executable, "-c", program], timeout=60, check=True)


def test_asynchronous_calls(tmp_path: Path) -> None:
    path = write_echo(tmp_path / "echo", sleep_ms=20)
    options = OPEOptions(num_workers=2)
    with load_neuropod(path, use_ope=True, ope_options=options) as model:
        futures = [model.infer_async({"x": np.full(3, i, "float32")}) for i in range(8)]
        for i, future in enumerate(futures):
            np.testing.assert_array_equal(future.result(timeout=30)["y"], np.full(3, 2 * i))

        async def calls() -> list[Any]:
            awaited = await asyncio.gather(*(model.infer_async({"x": ONES}) for _ in range(8)))
            threads = await asyncio.gather(
                *(asyncio.to_thread(model.infer, {"x": ONES}) for _ in range(8))
            )
            return [*awaited, *threads]

        for outputs in asyncio.run(calls()):
            np.testing.assert_array_equal(outputs["y"], 2 * ONES)


def test_a_call_that_has_not_begun_is_withdrawn(tmp_path: Path) -> None:
    path = write_echo(tmp_path / "echo", sleep_ms=500)
    with load_neuropod(path, use_ope=True) as model:
        other = threading.Thread(target=model.infer, args=({"x": ONES},))
        other.start()
        time.sleep(0.1)
        handed_over = model.infer_async({"x": ONES})  # the worker is busy with the other's call
        time.sleep(0.1)
        queued = model.infer_async({"x": ONES})
        assert queued.cancel()
        assert handed_over.cancel()
        with pytest.raises((neuropod.CancelledError, concurrent.futures.CancelledError)):
            handed_over.result(timeout=30)
        other.join()
        assert model.workers()[0]["calls"] == 1


def test_asynchronous_calls_work_in_this_process_too(tmp_path: Path) -> None:
    with load_neuropod(write_echo(tmp_path / "echo")) as model:
        assert model.workers() == []
        np.testing.assert_array_equal(model.infer_async({"x": ONES}).result()["y"], 2 * ONES)


def child(model: Neuropod, array: Any, failed: Any) -> None:
    for i in range(20):
        outputs = model.infer({"x": np.full(3, i, "float32")})
        if not np.array_equal(outputs["y"], np.full(3, 2 * i)):
            failed.value += 1
    if not np.array_equal(model.infer({"x": array})["y"], 2 * array):
        failed.value += 1


def test_forked_children_have_workers_of_their_own(model: Neuropod) -> None:
    array = model.allocate("x", (100,))
    array[:] = 7
    held = model.infer({"x": np.ones(5000, "float32")})["y"]
    context = multiprocessing.get_context("fork")
    failed = context.Value("i", 0)
    children = [context.Process(target=child, args=(model, array, failed)) for _ in range(4)]
    for process in children:
        process.start()
    for i in range(200):
        np.testing.assert_array_equal(
            model.infer({"x": np.full(3, i, "float32")})["y"], np.full(3, 2 * i)
        )
    for process in children:
        process.join(60)
        assert process.exitcode == 0
    assert failed.value == 0
    np.testing.assert_array_equal(held, np.full(5000, 2))


def test_a_thread_pool_loads_and_others_infer(tmp_path: Path) -> None:
    path = write_echo(tmp_path / "echo")
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        model = pool.submit(load_neuropod, path, use_ope=True).result()
    worker = model.workers()[0]["pid"]
    for _ in range(20):
        model.infer({"x": ONES})
        time.sleep(0.05)
    assert model.workers()[0]["pid"] == worker
    model.close()
    assert is_gone(worker)


def test_asyncio_loads_in_a_thread_that_may_end(tmp_path: Path) -> None:
    path = write_echo(tmp_path / "echo")

    async def load() -> Neuropod:
        return await asyncio.to_thread(load_neuropod, path, use_ope=True)

    model = asyncio.run(load())  # which ends its threads
    worker = model.workers()[0]["pid"]
    time.sleep(0.5)
    np.testing.assert_array_equal(model.infer({"x": ONES})["y"], 2 * ONES)
    assert model.workers()[0]["pid"] == worker
    model.close()


def test_what_a_model_prints_goes_to_the_log_never_to_stdout(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    lines: list[str] = []
    neuropod.set_log_sink(lambda _level, message, *_: lines.append(message))
    try:
        with load_neuropod(write_echo(tmp_path / "echo", print="hello"), use_ope=True) as model:
            model.infer({"x": ONES})
            assert eventually(lambda: sum("hello" in line for line in lines) == 2)
    finally:
        neuropod.set_log_sink(None)
    assert all("model 'doubling'" in line for line in lines if "hello" in line)
    assert capfd.readouterr().out == ""


def test_ps_shows_the_worker(model: Neuropod) -> None:
    command = [sys.executable, "-m", "neuropod", "ps"]
    pid = model.workers()[0]["pid"]
    shown = subprocess.run([*command, "--json"], capture_output=True, text=True, check=True)
    (worker,) = [w for w in json.loads(shown.stdout)["workers"] if w["pid"] == pid]
    assert worker["host_pid"] == os.getpid()
    assert worker["model"] == "doubling"
    table = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert str(pid) in table
    assert "up" in table
    watching = subprocess.Popen([*command, "--watch"], stdout=subprocess.PIPE, text=True)
    assert watching.stdout is not None
    assert "workers" in watching.stdout.readline()
    watching.send_signal(signal.SIGINT)
    assert watching.wait(30) == 130


def test_ps_shows_a_worker_that_listens(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    listening = subprocess.Popen(
        [Path(sys.executable).with_name("neuropod-worker"), "--listen", path]
    )
    try:
        assert eventually(path.exists)

        def state() -> str:
            (shown,) = [w for w in list_workers() if w["pid"] == listening.pid]
            return shown["state"]

        assert state() == "idle"
        options = OPEOptions(control_queue_name=str(path))
        with load_neuropod(
            write_echo(tmp_path / "echo"), use_ope=True, ope_options=options
        ) as model:
            assert state() == "ready"
            model.infer({"x": np.ones(100_000, "float32")})
            (shown,) = model.workers()
            assert shown["pid"] == listening.pid
        assert eventually(lambda: state() == "idle")
    finally:
        listening.terminate()
        assert listening.wait(30) == 0
    assert not path.exists()


def test_ages_have_two_units() -> None:
    assert [ps._age(s) for s in (0.4, 59, 60, 125, 3600, 6000, 90_000, 864_000)] == [
        "0 s",
        "59 s",
        "1 min",
        "2 min 5 s",
        "1 h",
        "1 h 40 min",
        "1 d 1 h",
        "10 d",
    ]


def test_a_killed_hosts_workers_end_though_its_forked_child_lives(tmp_path: Path) -> None:
    program = f"""
import os, sys, time
from neuropod import load_neuropod
model = load_neuropod({str(write_echo(tmp_path / "echo"))!r}, use_ope=True)
child = os.fork()
if child == 0:
    time.sleep(60)
print(model.workers()[0]["pid"], child, flush=True)
time.sleep(60)
"""
    host = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert host.stdout is not None
    worker, forked = map(int, host.stdout.readline().split())
    shared = set(Path("/dev/shm").iterdir())
    host.kill()
    host.wait()
    begin = time.monotonic()
    assert eventually(lambda: is_gone(worker))
    print(f"the worker was gone after {time.monotonic() - begin:.3f} s")
    assert set(Path("/dev/shm").iterdir()) == shared
    os.kill(forked, signal.SIGKILL)


def test_stats_have_what_is_a_workers_own(model: Neuropod) -> None:
    model.infer({"x": ONES})
    os.kill(model.workers()[0]["pid"], signal.SIGKILL)
    assert eventually(lambda: model.stats()["worker_restarts"] == 1)
    stats = model.stats()
    assert stats["worker_deaths"] == 1
    assert stats["latency"]["queue"]["count"] == stats["latency"]["transport"]["count"] == 1
    text = neuropod.metrics_text()
    assert 'neuropod_worker_deaths_total{model="doubling"' in text
    assert 'phase="transport"' in text


# cgroups look as if nobody had mounted any.
HIDE_CGROUPS = 'mount -t tmpfs none /sys/fs/cgroup && exec "$@"'

TORCH_HOG = """
import sys, torch
from neuropod.packagers import create_torchscript_neuropod

class Hog(torch.nn.Module):
    def forward(self, megabytes):
        held = torch.ones([int(megabytes[0]), 1024, 1024], dtype=torch.uint8)
        return {"sum": held.sum().reshape(1)}

create_torchscript_neuropod(
    neuropod_path=sys.argv[1], model_name="hog", module=torch.jit.script(Hog()),
    input_spec=[{"name": "megabytes", "dtype": "int64", "shape": (1,)}],
    output_spec=[{"name": "sum", "dtype": "int64", "shape": (1,)}],
)
"""

USE_HOG = """
import sys
import numpy as np
from neuropod import NeuropodError, load_neuropod
model = load_neuropod(sys.argv[1], use_ope=True, threads=1,
                      ope_options={"memory_limit": 1 << 30, "startup_timeout": 300})
with open(f"/proc/{model.workers()[0]['pid']}/cgroup") as groups:
    print("in a cgroup" if "/neuropod-" in groups.read() else "without")
try:
    model.infer({"megabytes": np.array([4000])})
except NeuropodError as error:
    print(error.code, str(error).replace("\\n", " "))
for _ in range(100):
    try:
        print(model.infer({"megabytes": np.array([10])})["sum"][0] == 10 << 20)
        break
    except NeuropodError as error:
        assert error.code == "unavailable", error
"""


@pytest.mark.parametrize("root", [True, False], ids=["as_root", "without_a_cgroup"])
def test_a_model_that_allocates_past_its_limit(tmp_path: Path, root: bool) -> None:
    """With a cgroup (root's, where cgroups may be made) the kernel kills the worker; without one its
    allocation fails."""
    package = tmp_path / "hog.neuropod"
    packager = tmp_path / "package.py"  # TorchScript reads the source
    packager.write_text(TORCH_HOG)
    subprocess.run([sys.executable, "-W", "ignore", str(packager), str(package)], check=True)
    command = [sys.executable, "-c", USE_HOG, str(package)]
    if not root:
        command = ["unshare", "-m", "sh", "-c", HIDE_CGROUPS, "sh", *command]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    where, failed, works = done.stdout.splitlines()
    if where == "in a cgroup":
        assert root
        assert failed.startswith("worker_died")
        assert "more memory than ope_options.memory_limit, 1073741824 bytes" in failed
    else:
        assert failed.startswith("out_of_memory")
        assert "can't allocate memory" in failed
    assert works == "True"


TORCH_LARGE = """
import sys, torch
from neuropod.packagers import create_torchscript_neuropod

class Large(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.rand(100_000_000))

    def forward(self, x):
        return {"y": x * self.weight[0]}

create_torchscript_neuropod(
    neuropod_path=sys.argv[1], model_name="large", module=torch.jit.script(Large()),
    input_spec=[{"name": "x", "dtype": "float32", "shape": (1,)}],
    output_spec=[{"name": "y", "dtype": "float32", "shape": (1,)}],
)
"""

LOAD_LARGE = """
import sys
from neuropod import NeuropodError, load_neuropod
try:
    load_neuropod(sys.argv[1], use_ope=True, ope_options={"memory_limit": 300 << 20})
except NeuropodError as error:
    print(error.code, error)
"""


@pytest.fixture(scope="module")
def large_package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """400 MB of weights."""
    folder = tmp_path_factory.mktemp("large")
    program = folder / "program.py"  # TorchScript reads the source
    program.write_text(TORCH_LARGE)
    package = folder / "large.neuropod"
    subprocess.run([sys.executable, "-W", "ignore", str(program), str(package)], check=True)
    return package


@pytest.mark.parametrize("root", [True, False], ids=["as_root", "without_a_cgroup"])
def test_a_model_larger_than_its_limit_is_refused_at_once(large_package: Path, root: bool) -> None:
    command = [sys.executable, "-c", LOAD_LARGE, str(large_package)]
    if not root:
        command = ["unshare", "-m", "sh", "-c", HIDE_CGROUPS, "sh", *command]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.startswith("out_of_memory")
    assert "can't load model 'large'" in done.stdout
    assert "starting another one" not in done.stderr


@pytest.mark.parametrize("megabytes", [64, 0])
def test_it_needs_no_shm_no_home_and_no_rights(tmp_path: Path, megabytes: int) -> None:
    path = write_echo(tmp_path / "echo")
    program = f"""
import numpy as np
from neuropod import load_neuropod
model = load_neuropod({str(path)!r}, use_ope=True)
x = model.allocate("x", (50_000_000,))
x[:] = 1
print(model.infer({{"x": x}})["y"].sum())
"""
    for folder in (path, *path.parents):
        if folder != Path("/"):
            folder.chmod(folder.stat().st_mode | 0o055)
    mount = f"mount -t tmpfs -o size={megabytes}m none /dev/shm"
    if megabytes == 0:
        mount = "umount -l /dev/shm"
    nobody = "setpriv --reuid 65534 --regid 65534 --clear-groups"
    read_only = "mount -o remount,ro,bind / && ! touch /tmp/neuropod_test 2>/dev/null"
    script = f'{mount} && {read_only} && exec {nobody} "$@"'
    environment = {k: v for k, v in os.environ.items() if k not in ("HOME", "XDG_DATA_HOME")}
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", script, "sh", sys.executable, "-B", "-c", program],
        capture_output=True,
        text=True,
        timeout=120,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) == 1e8
