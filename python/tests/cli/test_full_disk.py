"""Files that a command writes when the disk is full: a limit on the size of files acts like one."""

import resource
import stat
from pathlib import Path

import numpy as np
import pytest
from processes import done

BEFORE = "what was there before"


@pytest.mark.parametrize(
    ("command", "limit", "target"),
    [
        (("run", "P", "-i", "in.npz", "-o", "F"), 100, "out.npz"),
        (("api", "show", "P", "-o", "F"), 50, "api.json"),
        (("bench", "P", "--calls", "2", "--plot", "F"), 1000, "plot.svg"),
        (("evaluate", "P", "--data", "in.npz", "--html", "F"), 4000, "page.html"),
        (("evaluate", "P", "--data", "in.npz", "--json-file", "F"), 500, "figures.json"),
    ],
)
def test_the_error_names_the_file_and_nothing_is_lost(tmp_path, addition, command, limit, target):
    if command[0] == "bench":
        pytest.importorskip("matplotlib")
    x = np.arange(4, dtype="float32")
    np.savez(tmp_path / "in.npz", x=x, y=x)
    (tmp_path / target).write_text(BEFORE)
    words = [{"P": addition, "F": target}.get(word, word) for word in command]
    ended = done(*words, cwd=tmp_path, preexec_fn=limited_to(limit))
    assert ended.returncode == 2, ended.stderr
    assert f" {target}: can't be written: File too large" in ended.stderr
    assert (tmp_path / target).read_text() == BEFORE
    assert not list(tmp_path.glob(".neuropod-*"))


def test_no_half_of_a_key_stays(tmp_path):
    ended = done("keygen", "key", cwd=tmp_path, preexec_fn=limited_to(50))
    assert ended.returncode == 2
    assert "key.private.pem: File too large" in ended.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_device_is_written_to_and_stays_one(tmp_path, addition):
    """Replacing it, as files are, would take it from everybody else."""
    x = np.arange(4, dtype="float32")
    np.savez(tmp_path / "in.npz", x=x, y=x)
    pipe = ("evaluate", addition, "--data", tmp_path / "in.npz", "--html", "/dev/fd/1")
    assert "<html" in done(*pipe).stdout
    done("api", "show", addition, "-o", "/dev/null")
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)


def limited_to(size):
    """Of files that the process writes, so many bytes."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
