import json
import resource
import subprocess
import sys

import pytest

from neuropod.cli.main import main
from neuropod.signing import package_signers


def run(capsys, *arguments):
    code = main(list(map(str, arguments)))
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_keygen_sign_verify(capsys, package, tmp_path):
    name = tmp_path / "release"
    code, out, _ = run(capsys, "keygen", name)
    assert code == 0
    key_id = out.split()[1]
    assert str(tmp_path / "release.private.pem") in out
    code, out, _ = run(capsys, "sign", package, "--key", f"{name}.private.pem")
    assert (code, key_id in out) == (0, True)
    code, out, _ = run(capsys, "verify", package, "--key", f"{name}.public.pem")
    assert (code, key_id in out) == (0, True)
    code, out, _ = run(capsys, "info", "--json", package)
    assert (code, json.loads(out)["signers"]) == (0, [key_id])
    code, out, _ = run(capsys, "info", package)
    assert f"signed, as it says, by key {key_id}" in out


def test_they_speak_json(capsys, package, tmp_path):
    name = tmp_path / "release"
    _, out, _ = run(capsys, "keygen", "--json", name)
    made = json.loads(out)
    _, out, _ = run(capsys, "sign", "--json", package, "--key", made["private_key"])
    assert json.loads(out)["signers"] == [made["key_id"]]
    _, out, _ = run(capsys, "verify", "--json", package, "--key", made["public_key"])
    assert json.loads(out) == {"path": str(package), "key_id": made["key_id"], "verified": True}


def test_verify_takes_several_keys(capsys, signed, keys, other_keys):
    code, out, _ = run(capsys, "verify", signed, "--key", other_keys.public, keys.public)
    assert (code, keys.id in out) == (0, True)


@pytest.mark.parametrize("command", ["sign", "verify"])
def test_a_package_that_is_not_there_is_3(capsys, tmp_path, keys, command):
    code, _, err = run(capsys, command, tmp_path / "none", "--key", keys.public)
    assert (code, "no package at" in err) == (3, True)


@pytest.mark.parametrize("command", ["sign", "verify"])
def test_a_key_that_is_not_there_is_2(capsys, package, tmp_path, command):
    code, _, err = run(capsys, command, package, "--key", tmp_path / "none.pem")
    assert (code, "none.pem" in err) == (2, True)


def test_keys_are_not_overwritten(capsys, tmp_path):
    assert run(capsys, "keygen", tmp_path / "k")[0] == 0
    code, _, err = run(capsys, "keygen", tmp_path / "k")
    assert (code, "exist" in err) == (2, True)


def test_packages_that_are_not_as_signed_are_3(capsys, package, signed_folder, keys, other_keys):
    code, _, err = run(capsys, "verify", package, "--key", keys.public)
    assert (code, "isn't signed" in err) == (3, True)
    code, _, err = run(capsys, "verify", signed_folder, "--key", other_keys.public)
    assert (code, keys.id in err, other_keys.id in err) == (3, True, True)
    (signed_folder / "config.json").write_text("{}")
    code, _, err = run(capsys, "verify", signed_folder, "--key", keys.public)
    assert (code, "config.json" in err) == (3, True)


def test_add_manifest(capsys, signed_folder, keys, other_keys):
    (signed_folder / "manifest.json").unlink()
    (signed_folder / "signature.json").unlink()
    code, _, err = run(capsys, "sign", signed_folder, "--key", other_keys.private)
    assert (code, "--add-manifest" in err) == (3, True)
    arguments = ["sign", signed_folder, "--key", other_keys.private, "--add-manifest"]
    assert run(capsys, *arguments)[0] == 0
    assert package_signers(signed_folder) == [other_keys.id]


def test_run_takes_the_requirement(capsys, package, signed_folder, keys, tmp_path):
    inputs = tmp_path / "inputs.json"
    inputs.write_text('{"x": [1], "y": [2]}')
    required = ["-i", inputs, "--require-signature", keys.public]
    assert run(capsys, "run", signed_folder, *required)[0] == 0
    code, _, err = run(capsys, "run", package, *required)
    assert (code, "isn't signed" in err) == (3, True)


def test_a_package_that_cannot_be_written_is_2(package, keys):
    """A limit on the size of files acts like a full disk."""
    command = [sys.executable, "-m", "neuropod", "sign", str(package), "--key", str(keys.private)]
    ended = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100)),
    )
    assert ended.returncode == 2
    assert "File too large; it isn't signed" in ended.stderr
    assert package_signers(package) == []
