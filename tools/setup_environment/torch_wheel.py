"""Finds out which torch wheel pip would take, and says its size before it is downloaded.

pip resolves with `--dry-run`, but many versions download the wheel all the same. They name the file
and its size first, so pip is stopped as soon as it has named a large one.
"""

import re
import subprocess
import sys
import time
from pathlib import Path

from setup_environment import disk
from setup_environment.paths import ROOT, VENV_PYTHON
from setup_environment.progress import say

# torch 2.13.0 for x86-64 with the CUDA 13 libraries that it requires, measured.
_CUDA_DOWNLOAD_GB, _CUDA_DISK_GB = 2.7, 5.6
# CPU wheels weigh 150 to 250 MB, CUDA wheels more than 500.
_LARGE_MB = 400.0
_RESOLVE_TIMEOUT_S = 120.0
_WHEEL_LINE = re.compile(
    r"(?:Downloading|Using cached|Processing) \S*?(?P<file>torch-[^/\s]+\.whl)"
    r"(?: \((?P<size>[\d.]+) (?P<unit>kB|MB|GB)\))?(?:\s|$)"
)
_MB_PER_UNIT = {"kB": 1e-3, "MB": 1.0, "GB": 1e3}
_PAUSE_ON_TERMINAL_S = 10


def announce_size(requirements: Path) -> None:
    """Says what torch weighs if only a CUDA build is to be had, and refuses too small a disk."""
    if _is_installed():
        return
    say("asking pip which build of torch it would take")
    found = _find_wheel(requirements)
    if found is None:  # offline, or an index that fails: the installation itself reports it
        return
    name, size_mb = found
    if "+cpu" in name or size_mb < _LARGE_MB:
        say(f"torch: {name}")
        return
    say(
        f"torch: only a CUDA build is to be had here: {name}, {size_mb:.0f} MB; with the CUDA "
        f"libraries it requires about {_CUDA_DOWNLOAD_GB} GB are downloaded and "
        f"{_CUDA_DISK_GB} GB of disk are used"
    )
    say("a CPU wheel of the same version is taken instead where PIP_FIND_LINKS or an index has one")
    disk.require_free(_CUDA_DISK_GB + _CUDA_DOWNLOAD_GB, "the CUDA build of torch")
    if sys.stdout.isatty():
        say(f"going on in {_PAUSE_ON_TERMINAL_S} s (Ctrl-C stops)")
        time.sleep(_PAUSE_ON_TERMINAL_S)


def wheel_of_line(line: str) -> tuple[str, float] | None:
    """File name and size in MB of the torch wheel that a line of pip's output is about.

    A wheel on this machine's disk has no size in pip's output: 0 stands for "no download".
    """
    match = _WHEEL_LINE.search(line)
    if match is None:
        return None
    size_mb = float(match["size"]) * _MB_PER_UNIT[match["unit"]] if match["size"] else 0.0
    return match["file"].replace("%2B", "+"), size_mb


def _is_installed() -> bool:
    program = "import importlib.metadata as m; m.version('torch')"
    command = [str(VENV_PYTHON), "-I", "-c", program]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def _find_wheel(requirements: Path) -> tuple[str, float] | None:
    command = [str(VENV_PYTHON), "-u", "-m", "pip", "install", "--dry-run", "--no-deps"]
    command += ["--progress-bar=off", "--no-input", "--disable-pip-version-check"]
    process = subprocess.Popen(
        [*command, f"--requirement={requirements}"],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    deadline = time.monotonic() + _RESOLVE_TIMEOUT_S
    try:
        for line in process.stdout:
            found = wheel_of_line(line)
            if found is not None or time.monotonic() > deadline:
                return found
        return None
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()
