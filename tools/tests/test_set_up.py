"""The parts of the set-up that can be tried without setting anything up."""

import pytest
from setup_environment import disk, progress, stamps, system_packages, torch_wheel


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            "  Downloading torch-2.13.0-cp312-cp312-manylinux_2_28_x86_64.whl (526.6 MB)",
            ("torch-2.13.0-cp312-cp312-manylinux_2_28_x86_64.whl", 526.6),
        ),
        (
            "  Using cached torch-2.13.0%2Bcpu-cp312-cp312-linux_x86_64.whl (0.2 GB)",
            ("torch-2.13.0+cpu-cp312-cp312-linux_x86_64.whl", 200.0),
        ),
        (
            "Processing ./wheels/torch-2.13.0+cpu-cp311-cp311-linux_x86_64.whl (from -r f.txt (line 3))",
            ("torch-2.13.0+cpu-cp311-cp311-linux_x86_64.whl", 0.0),
        ),
        ("  Downloading torch-2.13.0-cp312-cp312-linux_x86_64.whl.metadata (30 kB)", None),
        ("  Downloading torchvision-0.29.0-cp312-cp312-linux_x86_64.whl (8 MB)", None),
        ("Collecting torch==2.13.0", None),
    ],
)
def test_reads_the_torch_wheel_off_pips_output(line, expected):
    assert torch_wheel.wheel_of_line(line) == expected


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """An empty checkout that the set-up works on."""
    monkeypatch.setattr(stamps, "ROOT", tmp_path)
    monkeypatch.setattr(stamps, "STAMPS", tmp_path / ".venv" / "setup-stamps")
    monkeypatch.setattr(progress, "ROOT", tmp_path)
    monkeypatch.setattr(progress, "LOGS", tmp_path / "build" / "logs")
    monkeypatch.setattr(disk, "ROOT", tmp_path)
    return tmp_path


def test_a_stamp_matches_until_a_content_or_a_name_changes(checkout):
    source = checkout / "a.txt"
    source.write_text("1")
    stamps.write("step", stamps.fingerprint([source]))
    assert stamps.matches("step", stamps.fingerprint([source]))

    source.write_text("2")
    assert not stamps.matches("step", stamps.fingerprint([source]))

    source.write_text("1")
    renamed = source.rename(checkout / "b.txt")
    assert not stamps.matches("step", stamps.fingerprint([renamed]))


def test_a_cleared_stamp_matches_nothing(checkout):
    stamps.write("step", "x")
    stamps.clear("step")
    assert not stamps.matches("step", "x")


def test_a_failed_command_shows_its_last_lines_and_its_log(checkout, capsys):
    with pytest.raises(progress.SetupError, match=r"compiling failed .*exit 3.*build/logs/x\.log"):
        progress.run_logged("compiling", ["sh", "-c", "echo the reason; exit 3"], "x.log")
    assert "the reason" in capsys.readouterr().out
    assert "the reason" in (checkout / "build" / "logs" / "x.log").read_text()


def test_a_first_set_up_is_refused_on_a_full_disk(checkout, monkeypatch, capsys):
    monkeypatch.setattr(disk.shutil, "disk_usage", lambda _: type("Usage", (), {"free": 1e9}))
    with pytest.raises(progress.SetupError, match=r"1\.0 GB free"):
        disk.announce([], packages_due=True, build_due=True)
    assert "GB of disk (1.0 GB are free)" in capsys.readouterr().out


def test_missing_packages_are_named_in_one_line_without_root(monkeypatch):
    monkeypatch.setattr(system_packages, "_root_prefix", lambda: None)
    with pytest.raises(progress.SetupError) as caught:
        system_packages.install(["ninja-build", "cmake"])
    message = str(caught.value)
    assert "\n" not in message
    assert message.endswith("apt-get install --no-install-recommends ninja-build cmake")
