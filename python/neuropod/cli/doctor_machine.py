"""The kernel, the C library and the folders that Neuropod writes to."""

import fcntl
import os
import platform
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Final

from neuropod.cli.doctor_finding import Finding, Level
from neuropod.cli.writable import why_not_writable

_LITTLE_SPACE: Final = 1 << 30
_OUT_OF_PROCESS: Final = "running models in processes of their own will need it"
_CONTAINER: Final = "allow it in the container's seccomp profile, or run a newer kernel"


def check_machine() -> list[Finding]:
    return [
        _system(),
        _glibc(),
        _kernel_call("memfd_create", _try_memfd),
        _kernel_call("pidfd_open", _try_pidfd),
        _cgroup(),
        _shared_memory(),
        _temporary_folder(),
        _data_folder(),
    ]


def _system() -> Finding:
    usable = len(os.sched_getaffinity(0))
    text = f"{platform.system()} {platform.release()}, {platform.machine()}, {usable} CPUs usable"
    return Finding("system", text)


def _glibc() -> Finding:
    try:
        version = os.confstr("CS_GNU_LIBC_VERSION")
    except (ValueError, OSError):
        version = None
    if version:
        return Finding("glibc", version.removeprefix("glibc "))
    remedy = "use a system with glibc, such as Debian"
    return Finding("glibc", "this C library isn't glibc", Level.NOTE, remedy)


def _kernel_call(name: str, attempt: Callable[[], None]) -> Finding:
    try:
        attempt()
    except (OSError, AttributeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        return Finding(name, f"{reason}; {_OUT_OF_PROCESS}", Level.NOTE, _CONTAINER)
    return Finding(name, "works")


def _try_memfd() -> None:
    """With seals, which keep one process from taking memory away under another."""
    descriptor = os.memfd_create("neuropod-doctor", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        os.ftruncate(descriptor, 4096)
        seals = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, seals)
    finally:
        os.close(descriptor)


def _try_pidfd() -> None:
    os.close(os.pidfd_open(os.getpid()))


def _cgroup(root: Path = Path("/")) -> Finding:
    """Whether a memory limit can be put on a worker by cgroup v2."""
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError as error:
        lines = []
        reason = str(error.strerror)
    else:
        reason = "version 1 only"
    own = next((line.removeprefix("0::/") for line in lines if line.startswith("0::")), None)
    if own is not None:
        folder = root / "sys/fs/cgroup" / own
        if (folder / "cgroup.procs").exists() and _is_writable(folder):
            return Finding("cgroup v2", f"{folder} is writable")
        reason = f"{folder} isn't writable"
    return Finding(
        "cgroup v2",
        f"{reason}; memory limits of processes will count the heap only",
        Level.NOTE,
        "delegate a cgroup, as `systemd-run --user --scope -p Delegate=yes` does",
    )


def _is_writable(folder: Path) -> bool:
    return os.access(folder, os.W_OK) and not os.statvfs(folder).f_flag & os.ST_RDONLY


def _shared_memory(folder: Path = Path("/dev/shm")) -> Finding:
    try:
        size = shutil.disk_usage(folder).total
    except OSError as error:
        text = f"{error.strerror}; Neuropod doesn't need it, frameworks' data loaders may"
        return Finding(str(folder), text, Level.NOTE, f"mount a tmpfs at {folder}")
    return Finding(str(folder), f"{size_text(size)} (Neuropod doesn't need it)")


def _temporary_folder() -> Finding:
    """As the native library finds it: without the search for another place that Python makes."""
    folder = Path(os.environ.get("TMPDIR") or "/tmp")
    problem = why_not_writable(folder)
    if problem:
        remedy = "set TMPDIR to a folder that you can write to"
        text = f"{folder}: {problem}; packages that must be unpacked can't be loaded"
        return Finding("temporary files", text, Level.NOTE, remedy)
    free = shutil.disk_usage(folder).free
    if free < _LITTLE_SPACE:
        return Finding(
            "temporary files",
            f"{folder} has {size_text(free)} left",
            Level.NOTE,
            "free space there, or set TMPDIR to a folder with more: what a framework wants as a file is "
            "unpacked there",
        )
    return Finding("temporary files", f"{folder}, {size_text(free)} free")


def _data_folder() -> Finding:
    """Where `neuropod backends install` puts plug-ins."""
    remedy = "set XDG_DATA_HOME to a folder that you can write to, or install with --to DIR"
    try:
        from neuropod import _native
    except ImportError:
        return Finding("data folder", "unknown without the native module", Level.NOTE)
    folder = _native.user_backend_folder()
    if not folder:
        return Finding("data folder", "none: there is no HOME", Level.NOTE, remedy)
    existing = Path(folder)
    while not existing.exists() and existing != existing.parent:
        existing = existing.parent
    problem = why_not_writable(existing)
    if problem:
        text = f"{folder} can't be written to ({existing}: {problem}); plug-ins can't be installed there"
        return Finding("data folder", text, Level.NOTE, remedy)
    return Finding("data folder", folder)


def size_text(size: int) -> str:
    """`"1.5 GiB"`."""
    value = float(size)
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{value:.3g} {unit}"
        value /= 1024
    return f"{value:.3g} TiB"
