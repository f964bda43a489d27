"""A root folder that holds a Python and nothing else: no shell, compiler, CMake or git, no headers.

It is made of copies (hard links where the file system allows): the interpreter that made this
environment, its standard library, the shared libraries these need, and whole distributions of this
environment. Programs run in it by chroot(2), which takes root; others get a user namespace of their
own.
"""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

_LIBRARY = re.compile(r"(/\S+) \(0x[0-9a-f]+\)$", re.MULTILINE)
_SKIPPED = shutil.ignore_patterns(
    *("site-packages", "dist-packages", "test", "tests", "idlelib", "tkinter", "ensurepip"),
    *("config-*", "__pycache__", "EXTERNALLY-MANAGED", "*.a"),
)


class BareRoot:
    """The folder, and running Python in it. Nothing runs in it but what is put into it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.python = Path(sys.base_prefix, "bin", f"python3.{sys.version_info[1]}").resolve()
        self.site = Path(sysconfig.get_path("platlib", vars=dict.fromkeys(
            ("base", "platbase"), sys.base_prefix)))  # fmt: skip
        for folder in ("dev", "tmp", "home", "etc", "root"):
            (root / folder).mkdir(parents=True)
        (root / "tmp").chmod(0o1777)
        self._make_devices()
        self._add_interpreter()

    def path(self, inside: Path | str) -> Path:
        """Where the root's `inside` lies on this machine."""
        return self.root / Path(inside).relative_to("/")

    def add_distributions(self, names: Iterable[str]) -> list[str]:
        """Copies installed distributions and all that they require; returns what was copied."""
        added: dict[str, metadata.Distribution] = {}
        wanted = list(names)
        while wanted:
            distribution = metadata.distribution(wanted.pop())
            if distribution.name in added:
                continue
            added[distribution.name] = distribution
            requirements = map(Requirement, distribution.requires or ())
            extra = {"extra": ""}
            wanted += [r.name for r in requirements if r.marker is None or r.marker.evaluate(extra)]
        for distribution in added.values():
            self._add_files(distribution)
        return sorted(added)

    def run(self, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Runs a program of the root, in its folder /home, with `environment` and little else."""
        prefix = [] if os.geteuid() == 0 else [_find("unshare"), "--map-root-user"]
        inside = {"PATH": str(self.python.parent), "HOME": "/root", "LC_ALL": "C.UTF-8"}
        return subprocess.run(
            [*prefix, _find("chroot"), str(self.root), str(self.python), "-c", _START, *command],
            env=inside | environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    def _make_devices(self) -> None:
        for name, minor, content in (("null", 3, b""), ("urandom", 9, os.urandom(1 << 16))):
            device = self.root / "dev" / name
            try:
                os.mknod(device, 0o020666, os.makedev(1, minor))
            except PermissionError:  # without the privilege a file serves
                device.write_bytes(content)
            device.chmod(0o666)

    def _add_interpreter(self) -> None:
        stdlib = Path(sysconfig.get_path("stdlib"))
        _link(self.python, self.path(self.python))
        shutil.copytree(stdlib, self.path(stdlib), copy_function=_link, ignore=_SKIPPED)
        extensions = [*self.path(stdlib).glob("lib-dynload/*.so"), self.python]
        self._add_libraries(extensions)

    def _add_files(self, distribution: metadata.Distribution) -> None:
        """Files of a distribution but its programs, which name this environment's interpreter."""
        extensions = []
        for file in distribution.files or ():
            source = Path(str(distribution.locate_file(file)))
            if ".." in file.parts or source.suffix == ".pyc" or not source.is_file():
                continue
            target = self.path(self.site / file)
            _link(source, target)
            if ".so" in target.suffixes:
                extensions.append(source)
        self._add_libraries(extensions)

    def _add_libraries(self, binaries: Iterable[Path]) -> None:
        """The system's libraries that `binaries` need, the loader among them."""
        own = Path(sysconfig.get_path("purelib"))
        found = set()
        for binary in binaries:
            printed = subprocess.run(["ldd", binary], capture_output=True, text=True, check=False)
            found.update(Path(path) for path in _LIBRARY.findall(printed.stdout))
        for library in found:
            if not library.is_relative_to(own):
                _link(library.resolve(), self.path(library))


# Runs its arguments as a program in /home; there is no shell to do it.
_START = "import os, sys; os.chdir('/home'); os.execvp(sys.argv[1], sys.argv[1:])"


def _find(program: str) -> str:
    found = shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin")
    assert found is not None, f"{program} isn't installed"
    return found


def _link(source: str | Path, target: str | Path) -> None:
    """A hard link of a file, or a copy of it on another file system."""
    path = Path(target)
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists():
        return
    try:
        os.link(source, path)
    except OSError:
        shutil.copy2(source, path)
