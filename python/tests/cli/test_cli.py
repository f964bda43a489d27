import json
import signal
import subprocess
import sys
import time

import pytest
from echo_packager import ADDITION, create_echo_neuropod

import neuropod
from neuropod.cli.main import main

PROGRAM = [sys.executable, "-m", "neuropod"]


def failed(capsys, *arguments):
    """Runs a command that fails; returns the exit code and its one line on stderr."""
    try:
        code = main(list(map(str, arguments)))
    except SystemExit as exit_:
        code = exit_.code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("neuropod: error: ")
    assert captured.err.count("\n") == 1
    return code, captured.err


def test_says_its_version(capsys):
    with pytest.raises(SystemExit) as exit_:
        main(["--version"])
    assert exit_.value.code == 0
    assert capsys.readouterr().out == f"neuropod {neuropod.__version__}\n"


@pytest.mark.parametrize(
    "arguments",
    [[], ["infer"], ["run"], ["run", "p", "--wrong"], ["backends"], ["backends", "install"]],
)
def test_wrong_usage_is_2(capsys, arguments):
    code, message = failed(capsys, *arguments)
    assert code == 2
    assert "--help" in message


@pytest.mark.parametrize("command", ["info", "run"])
def test_a_package_that_is_not_there_is_3(capsys, tmp_path, command):
    code, message = failed(capsys, command, tmp_path / "missing")
    assert code == 3
    assert "missing" in message


@pytest.mark.parametrize("content", [b"", b"no zip", b"PK\x03\x04 truncated"])
@pytest.mark.parametrize("command", ["info", "run"])
def test_a_package_that_cannot_be_read_is_3(capsys, tmp_path, command, content):
    (tmp_path / "broken").write_bytes(content)
    code, message = failed(capsys, command, tmp_path / "broken")
    assert code == 3
    assert "broken" in message


def test_a_changed_file_is_3_unless_hashes_are_not_compared(capsys, tmp_path, inputs):
    create_echo_neuropod(neuropod_path=tmp_path / "a", package_as_zip=False, **ADDITION)
    model = tmp_path / "a" / "0" / "data" / "echo.json"
    model.write_text(model.read_text() + "\n")
    code, message = failed(capsys, "run", tmp_path / "a", "-i", inputs)
    assert code == 3
    assert "echo.json" in message
    assert main(["run", str(tmp_path / "a"), "-i", inputs, "--no-verify"]) == 0


def test_a_platform_without_plug_in_is_4(tmp_path, monkeypatch):
    """In a process of its own: this one may hold the plug-in from an earlier test."""
    from neuropod.packaging import packager

    @packager(platform="torchscript")
    def create_empty_neuropod(draft):
        pass

    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    specs = {k: ADDITION[k] for k in ("model_name", "input_spec", "output_spec")}
    create_empty_neuropod(neuropod_path=tmp_path / "a", **specs)
    command = [*PROGRAM, "run", str(tmp_path / "a")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 4
    assert "`neuropod backends install torchscript`" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_model_that_fails_is_1(capsys, tmp_path, inputs):
    model = {"fail_if_negative": {"input": "x", "message": "too cold"}}
    create_echo_neuropod(neuropod_path=tmp_path / "a", model=model, **ADDITION)
    (tmp_path / "x.json").write_text('{"x": [-1], "y": [1]}')
    code, message = failed(capsys, "run", tmp_path / "a", "-i", tmp_path / "x.json")
    assert code == 1
    assert "too cold" in message
    assert main(["run", str(tmp_path / "a"), "-i", inputs]) == 0


def test_a_tensor_that_does_not_fit_is_2(capsys, addition, tmp_path):
    (tmp_path / "x.json").write_text('{"x": [[1]], "y": [1]}')
    code, message = failed(capsys, "run", addition, "-i", tmp_path / "x.json")
    assert code == 2
    assert "1 dimension" in message


def test_the_traceback_is_shown_only_on_request(tmp_path):
    command = [*PROGRAM, "info", str(tmp_path / "missing")]
    plain = subprocess.run(command, capture_output=True, text=True, check=False)
    debug = subprocess.run([*command, "--debug"], capture_output=True, text=True, check=False)
    assert plain.returncode == debug.returncode == 3
    assert "Traceback" not in plain.stderr
    assert "Traceback" in debug.stderr
    assert debug.stderr.endswith(plain.stderr)


def test_an_interruption_is_130(tmp_path, inputs):
    create_echo_neuropod(neuropod_path=tmp_path / "slow", model={"sleep_ms": 1000}, **ADDITION)
    process = subprocess.Popen(
        [*PROGRAM, "run", str(tmp_path / "slow"), "-i", inputs],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while "/backends/echo/" not in open(f"/proc/{process.pid}/maps").read():  # noqa: PTH123, SIM115
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate()
    assert process.returncode == 130
    assert errors == "neuropod: error: interrupted\n"


def test_a_reader_that_has_enough_is_no_error(addition):
    command = (
        f'"{sys.executable}" -m neuropod info "{addition}" | head -n 1; echo ${{PIPESTATUS[0]}}'
    )
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert done.stdout.splitlines()[-1] == "0"


def test_info_shows_specs_hashes_and_the_backend(capsys, addition):
    assert main(["info", addition]) == 0
    shown = capsys.readouterr().out
    for text in ("addition_model", "(batch_size,)", "float32", "config.json", "verified"):
        assert text in shown
    assert "backend: " in shown
    assert "[bold]adds[/bold]" in shown


def test_info_as_json(capsys, addition):
    assert main(["info", addition, "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["name"] == "addition_model"
    assert shown["inputs"][0] == {
        "name": "x",
        "dtype": "float32",
        "shape": ["batch_size"],
        "device": "GPU",
    }
    assert shown["manifest"] == "verified"
    assert shown["backend"]["platform"] == "echo"
    assert {f["name"] for f in shown["files"]} == {
        "0/data/echo.json",
        "config.json",
        "manifest.json",
    }
    assert all(len(f["sha256"]) == 64 for f in shown["files"])


def test_info_says_what_was_changed(capsys, tmp_path):
    create_echo_neuropod(neuropod_path=tmp_path / "a", package_as_zip=False, **ADDITION)
    (tmp_path / "a" / "0" / "data" / "echo.json").write_text("{}")
    assert main(["info", str(tmp_path / "a")]) == 0
    assert "0/data/echo.json" in capsys.readouterr().out.split("manifest: ")[1]


def test_info_says_which_command_adds_a_backend(capsys, tmp_path, monkeypatch):
    (tmp_path / "config.json").write_text('{"name": "m", "platform": "torchscript"}')
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "none"))
    assert main(["info", str(tmp_path)]) == 0
    assert "`neuropod backends install torchscript` adds one" in capsys.readouterr().out


def test_info_shows_control_characters_instead_of_obeying_them(capsys, tmp_path):
    spec = {"name": "x\x1b[2J", "dtype": "int8", "shape": []}
    config = {"name": "m\x1b[2J\nmanifest: verified", "platform": "echo", "input_spec": [spec]}
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert main(["info", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert "manifest: verified" not in shown.replace("\n  manifest", "")
    assert "\n  manifest: verified" in shown


def test_backends_are_listed(capsys):
    assert main(["backends", "list"]) == 0
    shown = capsys.readouterr().out
    assert "echo" in shown
    assert "searched: " in shown
    assert main(["backends", "list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    echo = next(b for b in listed["backends"] if b["platform"] == "echo")
    assert echo["usable"]
    assert listed["installable"] == ["torchscript"]


def test_a_backend_that_cannot_be_used_says_why(capsys, tmp_path, monkeypatch):
    plugin = tmp_path / "plugin"
    plugin.mkdir()
    manifest = {
        "manifest_version": 1,
        "platform": "echo",
        "framework": "echo",
        "framework_version": "9.9.9",
        "neuropod_abi": "another",
        "library": "lib.so",
        "libraries": [],
        "python_module": "",
        "gpu": False,
    }
    (plugin / "backend.json").write_text(json.dumps(manifest))
    monkeypatch.setenv("NEUROPOD_BACKEND_PATH", str(tmp_path))
    assert main(["backends", "list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)["backends"]
    found = next(b for b in listed if b["directory"] == str(plugin))
    assert not found["usable"]
    assert "ABI" in found["problem"]


def test_an_unknown_platform_cannot_be_installed(capsys):
    code, message = failed(capsys, "backends", "install", "nonsense")
    assert code == 2
    assert "there are: torchscript" in message
