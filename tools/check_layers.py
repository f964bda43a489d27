#!/usr/bin/env python3
"""Checks that the code keeps to its layers.

The rows below stand in order: a file may include its own row and the rows above. Beyond that:

- every C++ file under `source/neuropod/` belongs to a row;
- a plug-in's folder is included by nobody else;
- code that ships includes no test code;
- of the Python package, the command line is imported by nobody else, and the evaluation by the command
  line only;
- an installed header includes nothing but ours, the standard library's and the system's;
- a framework's name occurs in code (comments and docstrings aside) only in that framework's folder
  under `backends/`, in C++ and in Python. Exceptions stand in `layer_exceptions.txt` beside this
  file, a reason each.

Tests (`*_test.cc`, `*_benchmark.cc`, `testing/`) may include any row.
"""

import argparse
import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

# Row name and the files it holds, as patterns below source/neuropod/. `*` spans slashes; where several
# match, the longest pattern counts.
LAYERS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("base", ("base/*", "version.hh")),
    ("options", ("options.hh",)),
    (
        "tensors",
        (
            "internal/*",
            "core/*",
            "serialization/*",
            "conversions/*",
            "backends/tensor_allocator*",
        ),
    ),
    ("package", ("package/*", "internal/config_utils.*", "internal/neuropod_loader.*")),
    ("backend seam", ("internal/backend_registration*", "backends/*")),
    ("out-of-process", ("multiprocess/*",)),
    ("worker", ("multiprocess/worker/*",)),
    ("facade", ("neuropod.hh", "neuropod.cc", "swappable_neuropod.*", "async_calls.*")),
    ("plug-ins", ("backends/*/*",)),
    ("service", ("serving/*",)),
    ("bindings", ("bindings/*/*",)),
)
_RANKS = {name: rank for rank, (name, _) in enumerate(LAYERS)}
_TEST_PATTERNS = ("*_test.cc", "*_benchmark.cc", "testing/*", "*/testing/*", "*/fuzz/*")
_TEST_ROW = "tests"

# Folders whose headers, not those of their subfolders, are installed; "" is source/neuropod/ itself.
INSTALLED_FOLDERS = (
    "",
    "backends",
    "base",
    "conversions",
    "core",
    "internal",
    "package",
    "serialization",
)
# The one installed header that may include a third-party header.
_THIRD_PARTY_HEADERS_ALLOWED = {"conversions/eigen.hh"}
_C_HEADER = re.compile(
    r"(assert|ctype|dlfcn|errno|fcntl|inttypes|limits|link|math|poll|pthread|sched|signal|spawn|"
    r"stdarg|stddef|stdint|stdio|stdlib|string|strings|time|unistd)\.h"
)

# Folders of the Python package that stand on top of it, and who may import each.
PYTHON_IMPORTERS = {"cli": ("cli/", "__main__.py"), "evaluation": ("evaluation/", "cli/")}

_FRAMEWORK_NAME = re.compile(r"torch|tensorflow|onnx|keras", re.IGNORECASE)
# Folders under backends/ whose framework isn't read off the folder's own name.
_FOLDER_FRAMEWORKS = {
    "keras": frozenset({"keras", "tensorflow"}),
    "tensorflow": frozenset({"keras", "tensorflow"}),
}
_EXCEPTIONS_FILE = Path(__file__).with_name("layer_exceptions.txt")

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.MULTILINE)
# Comments, and the literals inside which what looks like a comment is none.
_CPP_TOKEN = re.compile(
    r"""//[^\n]*|/\*.*?\*/|R"(?P<delimiter>[^()\\\s]{0,16})\(.*?\)(?P=delimiter)\"|"""
    r""""(?:\\.|[^"\\\n])*"|(?<![0-9])'(?:\\.|[^'\\\n])*'""",
    re.DOTALL,
)
_CPP_SUFFIXES = {".cc", ".hh", ".c", ".h"}
_PYTHON_SUFFIXES = {".py", ".pyi"}


@dataclass(frozen=True, order=True)
class Finding:
    """One broken rule, at a line of a file."""

    path: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


def layer_of(path: str) -> str | None:
    """The row of a file (its path below source/neuropod/), "tests", or None for an unknown file."""
    if any(fnmatchcase(path, pattern) for pattern in _TEST_PATTERNS):
        return _TEST_ROW
    # The longest pattern is the most specific one: backends/*/* before backends/*.
    matches = [
        (len(pattern), name)
        for name, patterns in LAYERS
        for pattern in patterns
        if fnmatchcase(path, pattern)
    ]
    return max(matches)[1] if matches else None


def without_cpp_comments(text: str) -> str:
    """The text with comments blanked; lines keep their numbers, literals stay."""

    def blank(match: re.Match[str]) -> str:
        token = match.group()
        return re.sub(r"[^\n]", " ", token) if token.startswith(("//", "/*")) else token

    return _CPP_TOKEN.sub(blank, text)


def without_python_comments(text: str) -> str:
    """The text with comments and docstrings blanked; lines keep their numbers."""
    lines = text.splitlines(keepends=True)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column] + "\n"
    for node in ast.walk(ast.parse(text)):
        # A string that stands alone is documentation, of a module, class, function or attribute.
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
            and node.end_lineno is not None
        ):
            for row in range(node.lineno, node.end_lineno + 1):
                lines[row - 1] = "\n"
    return "".join(lines)


class LayerCheck:
    """Checks one tree. `exceptions` are the allowed (path, framework name) pairs, paths from the
    tree's root."""

    def __init__(self, root: Path, exceptions: frozenset[tuple[str, str]] = frozenset()) -> None:
        self._root = root
        self._source = root / "source" / "neuropod"
        self._exceptions = exceptions
        self._used_exceptions: set[tuple[str, str]] = set()

    def findings(self) -> list[Finding]:
        """All broken rules, by path and line."""
        found: list[Finding] = []
        for path in _files(self._source, _CPP_SUFFIXES):
            found += self._check_cpp_file(path)
        for path in _files(self._root / "python" / "neuropod", _PYTHON_SUFFIXES):
            text = path.read_text()
            found += _check_imports(path, text, self._root)
            code = without_python_comments(text)
            found += self._check_framework_names(path, code, self._root / "python" / "neuropod")
        for path_and_name in sorted(self._exceptions - self._used_exceptions):
            found.append(
                Finding(
                    _EXCEPTIONS_FILE.name,
                    1,
                    f"exception '{' '.join(path_and_name)}' is not needed any more: remove it",
                )
            )
        return sorted(found)

    def _check_cpp_file(self, path: Path) -> Iterator[Finding]:
        inside = path.relative_to(self._source).as_posix()
        shown = path.relative_to(self._root).as_posix()
        row = layer_of(inside)
        if row is None:
            yield Finding(shown, 1, "belongs to no layer: add it to LAYERS, or move it")
            return
        code = without_cpp_comments(path.read_text())
        for match in _INCLUDE.finditer(code):
            line = code.count("\n", 0, match.start(1)) + 1
            for message in self._check_include(path, inside, row, match[1], match[2]):
                yield Finding(shown, line, message)
        if row != _TEST_ROW:
            yield from self._check_framework_names(path, code, self._source)

    def _check_include(
        self, path: Path, inside: str, row: str, bracket: str, target: str
    ) -> Iterator[str]:
        if target.startswith("neuropod/"):
            yield from _check_own_include(inside, row, target.removeprefix("neuropod/"))
        elif bracket == '"' and (path.parent / target).exists():
            # A plug-in's folder is compiled wherever it was unpacked, so it finds its own files by name.
            if _plugin_folder(inside) is not None and ".." not in target:
                return
            yield f'"{target}": include our headers by their full path, "neuropod/…"'
        elif _is_installed(inside) and not _is_system_header(target):
            yield f"installed header includes the third-party header <{target}>"

    def _check_framework_names(self, path: Path, code: str, base: Path) -> Iterator[Finding]:
        shown = path.relative_to(self._root).as_posix()
        own = _own_frameworks(path.relative_to(base))
        for number, line in enumerate(code.splitlines(), 1):
            for name in sorted({match.lower() for match in _FRAMEWORK_NAME.findall(line)} - own):
                if (shown, name) in self._exceptions:
                    self._used_exceptions.add((shown, name))
                else:
                    yield Finding(shown, number, f"'{name}' is named outside its backend's folder")


def _check_imports(path: Path, text: str, root: Path) -> Iterator[Finding]:
    inside = path.relative_to(root / "python" / "neuropod").as_posix()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            modules = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        else:
            continue
        for folder, importers in PYTHON_IMPORTERS.items():
            module = f"neuropod.{folder}"
            imported = any(m == module or m.startswith(f"{module}.") for m in modules)
            if imported and not inside.startswith(importers):
                shown = path.relative_to(root).as_posix()
                yield Finding(
                    shown, node.lineno, f"{module} is imported by {' and '.join(importers)} only"
                )


def _check_own_include(inside: str, row: str, target: str) -> Iterator[str]:
    target_row = layer_of(target)
    if target_row is None:
        yield f'"neuropod/{target}" belongs to no layer'
        return
    if row == _TEST_ROW:
        return
    if target_row == _TEST_ROW:
        yield f'"neuropod/{target}" is test code'
    elif _RANKS[target_row] > _RANKS[row]:
        yield f"layer '{row}' includes \"neuropod/{target}\" of '{target_row}', a layer below it"
    elif target_row == "plug-ins" and _plugin_folder(target) != _plugin_folder(inside):
        yield f'"neuropod/{target}" is inside a plug-in: nothing else includes it'


def _plugin_folder(inside: str) -> str | None:
    parts = PurePosixPath(inside).parts
    return parts[1] if len(parts) > 2 and parts[0] == "backends" else None


def _own_frameworks(path: Path) -> frozenset[str]:
    """The frameworks that a file may name: those of its folder under backends/."""
    folder = _plugin_folder(path.as_posix())
    if folder is None:
        return frozenset()
    names = frozenset(match.lower() for match in _FRAMEWORK_NAME.findall(folder))
    return _FOLDER_FRAMEWORKS.get(folder, names)


def _is_installed(inside: str) -> bool:
    folder = str(PurePosixPath(inside).parent).removeprefix(".")
    return (
        inside.endswith(".hh")
        and folder in INSTALLED_FOLDERS
        and inside not in _THIRD_PARTY_HEADERS_ALLOWED
    )


def _is_system_header(target: str) -> bool:
    if target.startswith(("sys/", "linux/")):
        return True
    if target.endswith(".h"):
        return _C_HEADER.fullmatch(target) is not None
    return re.fullmatch(r"[a-z_0-9]+", target) is not None


def _files(folder: Path, suffixes: set[str]) -> Iterator[Path]:
    return (path for path in sorted(folder.rglob("*")) if path.suffix in suffixes)


def read_exceptions(path: Path) -> frozenset[tuple[str, str]]:
    """Reads lines `path name reason…`; a line without a reason is a ValueError."""
    pairs = set()
    for line in path.read_text().splitlines():
        words = line.partition("#")[0].split(maxsplit=2)
        if not words:
            continue
        if len(words) < 3:
            raise ValueError(f"{path.name}: '{line}' is not 'path name reason'")
        pairs.add((words[0], words[1]))
    return frozenset(pairs)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("root", nargs="?", type=Path, default=Path(__file__).resolve().parents[1])
    root = parser.parse_args().root
    findings = LayerCheck(root, read_exceptions(_EXCEPTIONS_FILE)).findings()
    for finding in findings:
        print(finding)
    print(f"layers: {len(findings)} findings" if findings else "layers: kept")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
