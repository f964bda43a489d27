"""Every example in the documentation runs.

A page is executed in a folder of its own, in order: `python` blocks that follow each other in one
interpreter, `bash` blocks in a shell of the environment, `cpp` blocks compiled against the installed
headers. A `cpp` block with a title is a whole program; the others are the bodies of functions of one
program per page. `console`, `cmake`, `json` and `text` blocks are for reading: what they show is run by
other tests (set-up, installed prefix).
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RUNNABLE = ("python", "bash", "cpp")
READ_ONLY = ("console", "cmake", "json", "text", "")
BLOCK = re.compile(r"^```(?P<language>[a-z]*)(?P<info>[^\n]*)\n(?P<code>.*?)^```$", re.M | re.S)


def blocks(page: Path) -> list[tuple[str, str, str]]:
    """(language, info string, code) of every fenced block of a page."""
    return [
        (m["language"], m["info"].strip(), m["code"])
        for m in BLOCK.finditer(page.read_text(encoding="utf-8"))
    ]


PAGES = sorted(ROOT.glob("docs/**/*.md"))
RUNNABLE_PAGES = [p for p in PAGES if any(language in RUNNABLE for language, _, _ in blocks(p))]


def run(command: list[str], folder: Path, what: str) -> None:
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, f"{what} failed:\n{done.stdout}\n{done.stderr}"


def native_prefix() -> Path:
    import neuropod._native

    return Path(neuropod._native.__file__).parent


def compile_and_run(source: Path, folder: Path) -> None:
    prefix = native_prefix()
    (library,) = prefix.glob("lib/libneuropod.so*")
    program = folder / source.stem
    flags = ["-std=c++17", "-Wall", "-Wextra", f"-I{prefix / 'include'}"]
    run(
        [
            "g++",
            *flags,
            str(source),
            str(library),
            f"-Wl,-rpath,{library.parent}",
            "-o",
            str(program),
        ],
        folder,
        f"compiling {source.name}",
    )
    run([str(program)], folder, f"running {source.name}")


def snippets_as_program(snippets: list[str]) -> str:
    functions = "\n".join(
        f"int snippet_{i}() {{\n{code}\nreturn 0;\n}}" for i, code in enumerate(snippets)
    )
    calls = " || ".join(f"snippet_{i}()" for i in range(len(snippets)))
    return (
        '#include <iostream>\n#include <vector>\n#include "neuropod/core/generic_tensor.hh"\n'
        '#include "neuropod/neuropod.hh"\n'
        f"{functions}\nint main() {{ return {calls} ? 1 : 0; }}\n"
    )


def test_every_block_has_a_language_that_is_run_or_known_to_be_read_only() -> None:
    unknown = {
        (page.name, language)
        for page in [*PAGES, ROOT / "README.md"]
        for language, _, _ in blocks(page)
        if language not in (*RUNNABLE, *READ_ONLY)
    }
    assert not unknown


@pytest.mark.parametrize("page", RUNNABLE_PAGES, ids=lambda p: str(p.relative_to(ROOT / "docs")))
def test_examples_run(page: Path, tmp_path: Path) -> None:
    pending: list[str] = []
    snippets: list[str] = []

    def flush_python() -> None:
        if pending:
            script = tmp_path / "page.py"
            script.write_text("\n".join(pending), encoding="utf-8")
            run([sys.executable, str(script)], tmp_path, f"python of {page.name}")
            pending.clear()

    for language, info, code in blocks(page):
        if language == "python":
            pending.append(code)
        elif language == "bash":
            flush_python()
            run(["bash", "-euo", "pipefail", "-c", code], tmp_path, f"shell of {page.name}")
        elif language == "cpp":
            flush_python()
            title = re.search(r'title="([^"]+)"', info)
            if title:
                source = tmp_path / title[1]
                source.write_text(code, encoding="utf-8")
                compile_and_run(source, tmp_path)
            else:
                snippets.append(code)
    flush_python()
    if snippets:
        source = tmp_path / "snippets.cc"
        source.write_text(snippets_as_program(snippets), encoding="utf-8")
        compile_and_run(source, tmp_path)
