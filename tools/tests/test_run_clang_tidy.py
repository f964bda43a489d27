"""Which files the clang-tidy runner picks, and what it remembers."""

import json
import subprocess

import pytest
import run_clang_tidy

CLEAN = '#include "a.hh"\n\nint answer() { return kAnswer; }\n'
WITH_FINDING = '#include "a.hh"\n\nint* answer() { return 0; }\n'


def git(folder, *arguments):
    identity = ("-c", "user.name=T", "-c", "user.email=t@example.org")
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A committed checkout of two clean sources, one of which includes the header a.hh."""
    monkeypatch.setattr(run_clang_tidy, "ROOT", tmp_path)
    monkeypatch.setattr(run_clang_tidy, "STATE", tmp_path / "build" / "lint")
    monkeypatch.setattr("sys.argv", ["run_clang_tidy"])
    source, build = tmp_path / "source", tmp_path / "build" / "release"
    source.mkdir()
    build.mkdir(parents=True)
    (tmp_path / ".gitignore").write_text("/build/\n")
    (tmp_path / ".clang-tidy").write_text(
        "Checks: '-*,modernize-use-nullptr'\nWarningsAsErrors: '*'\n"
    )
    (source / "a.hh").write_text("constexpr int kAnswer = 42;\n")
    (source / "a.cc").write_text(CLEAN)
    (source / "b.cc").write_text("int other() { return 1; }\n")
    commands = [
        {
            "directory": str(build),
            "command": f"/usr/bin/ccache g++ -Wno-such-warning-{name} -I{source} -c {source / name}.cc",
            "file": f"{source / name}.cc",
        }
        for name in ("a", "b")
    ]
    (build / "compile_commands.json").write_text(json.dumps(commands))
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "start")
    return tmp_path


def test_checks_everything_where_there_is_no_origin(checkout, capsys):
    assert run_clang_tidy.main() == 0
    assert "2 files in all, 2 not checked yet" in capsys.readouterr().out


def test_checks_what_changed_and_what_includes_a_changed_header(checkout, capsys):
    git(checkout, "update-ref", "refs/remotes/origin/main", "HEAD")
    (checkout / "source" / "a.hh").write_text("constexpr int kAnswer = 43;\n")
    assert run_clang_tidy.main() == 0
    printed = capsys.readouterr().out
    assert "1 files changed since origin/main" in printed
    assert "source/a.cc" in printed


def test_checks_everything_where_nothing_changed_since_origin(checkout, capsys):
    git(checkout, "update-ref", "refs/remotes/origin/main", "HEAD")
    assert run_clang_tidy.main() == 0
    assert "2 files in all" in capsys.readouterr().out


def test_a_passed_file_is_checked_again_only_after_a_change(checkout, capsys):
    run_clang_tidy.main()
    run_clang_tidy.main()
    assert "2 files in all, 0 not checked yet" in capsys.readouterr().out
    (checkout / "source" / "b.cc").write_text("int other() { return 2; }\n")
    run_clang_tidy.main()
    assert "2 files in all, 1 not checked yet" in capsys.readouterr().out


def test_findings_fail_every_time_and_name_the_place(checkout, capsys):
    (checkout / "source" / "a.cc").write_text(WITH_FINDING)
    for _ in range(2):
        assert run_clang_tidy.main() == 1
        assert "source/a.cc:3:24: error: use nullptr" in capsys.readouterr().out


def test_says_what_to_do_without_a_build(checkout, capsys):
    (checkout / "build" / "release" / "compile_commands.json").unlink()
    assert run_clang_tidy.main() == 1
    assert "run make setup" in capsys.readouterr().err
