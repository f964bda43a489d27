"""What shared libraries need of each other, and whether a built plug-in can be opened."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from neuropod.backend_installer.errors import BackendInstallError, MissingToolsError
from neuropod.errors import BackendNotFoundError

_ENTRY: Final = re.compile(r"\((NEEDED|RPATH|RUNPATH)\)[^\[]*\[([^\]]*)\]")
_SHOWN_MISSING: Final = 8
# In the same way as the core opens them.
_OPENING: Final = """
import ctypes, json, os, sys
for path in json.loads(sys.argv[1]):
    ctypes.CDLL(path, mode=os.RTLD_NOW | os.RTLD_LOCAL)
"""


def find_dependencies(libraries: Sequence[Path], prefix: Path) -> list[Path]:
    """What `libraries` need that lies in `prefix` and the system's loader wouldn't find.

    BackendNotFoundError names what lies nowhere.
    """
    search = _DependencySearch(prefix)
    for library in libraries:
        search.visit(library)
    own = {library.resolve() for library in libraries}
    if search.missing:
        names = sorted(search.missing)
        shown = ", ".join(names[:_SHOWN_MISSING])
        more = f" and {len(names) - _SHOWN_MISSING} more" if len(names) > _SHOWN_MISSING else ""
        raise BackendNotFoundError(
            f"{libraries[-1].name} in {libraries[-1].parent} needs {shown}{more}, which are neither in "
            f"{prefix} nor known to the system's loader; install the packages they come from, or "
            "unpack those into the prefix too"
        )
    return [path for path in search.found if path.resolve() not in own]


class _DependencySearch:
    """A walk through what libraries need, depth first."""

    def __init__(self, prefix: Path) -> None:
        self.found: list[Path] = []
        self.missing: set[str] = set()
        self._seen: set[Path] = set()
        self._system = _names_known_to_the_loader()
        self._in_prefix = _shared_libraries_of(prefix)

    def visit(self, library: Path) -> None:
        if library.resolve() in self._seen:
            return
        self._seen.add(library.resolve())
        self.found.append(library)
        needed, run_path = _read_dynamic_section(library)
        for name in needed:
            found = next((f / name for f in run_path if (f / name).is_file()), None)
            if found is not None:
                continue  # the loader finds it by the library's own run path
            if name in self._system:
                continue
            if name in self._in_prefix:
                self.visit(self._in_prefix[name])
            else:
                self.missing.add(name)


def check_opens(libraries: Iterable[str], plugin: Path, cores: Iterable[Path]) -> None:
    """Opens the framework's libraries, the core's and the plug-in in a process of their own.

    BackendInstallError with the loader's words if that fails.
    """
    paths = [*libraries, *map(str, cores), str(plugin)]
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", _OPENING, json.dumps(paths)],
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode != 0:
        reason = done.stderr.strip().rpartition("\n")[2] or f"exit code {done.returncode}"
        raise BackendInstallError(f"the plug-in was built, but can't be opened: {reason}")


def _read_dynamic_section(library: Path) -> tuple[list[str], list[Path]]:
    """The names it needs, and the folders of its run path."""
    readelf = shutil.which("readelf")
    if readelf is None:
        raise MissingToolsError(
            "`readelf` isn't found, which tells what libraries need; on Debian `apt-get install "
            "binutils` installs it"
        )
    done = subprocess.run(
        [readelf, "-d", "-W", str(library)], capture_output=True, text=True, check=False
    )
    needed: list[str] = []
    run_path: list[Path] = []
    for kind, value in _ENTRY.findall(done.stdout):
        if kind == "NEEDED":
            needed.append(value)
            continue
        origin = str(library.resolve().parent)
        folders = value.replace("${ORIGIN}", origin).replace("$ORIGIN", origin)
        run_path += [Path(folder) for folder in folders.split(":") if folder]
    return needed, run_path


def _names_known_to_the_loader() -> set[str]:
    """Those of its cache, and what lies in LD_LIBRARY_PATH."""
    names = {"ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
    for folder in filter(None, os.environ.get("LD_LIBRARY_PATH", "").split(":")):
        names.update(path.name for path in Path(folder).glob("*.so*"))
    ldconfig = shutil.which(
        "ldconfig", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"
    )
    if ldconfig is not None:
        done = subprocess.run([ldconfig, "-p"], capture_output=True, text=True, check=False)
        names.update(line.split()[0] for line in done.stdout.splitlines() if "=>" in line)
    return names


def _shared_libraries_of(prefix: Path) -> dict[str, Path]:
    """By file name, which is the name under which libraries are needed. Outer folders first."""
    found: dict[str, Path] = {}
    for path in sorted(prefix.rglob("*.so*"), key=lambda p: (len(p.parts), p)):
        if path.is_file():
            found.setdefault(path.name, path)
    return found
