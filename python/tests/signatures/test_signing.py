import base64
import errno
import json
import os
import shutil
import stat
import subprocess

import pytest
from echo_packager import ADDITION, create_echo_neuropod

from neuropod import (
    CorruptPackageError,
    InvalidArgumentError,
    InvalidPackageError,
    NotFoundError,
    load_neuropod,
)
from neuropod._native import list_files, read_file, verify_manifest
from neuropod.packaging import packager
from neuropod.packaging.manifest import write_manifest
from neuropod.signing import create_key_pair, package_signers, sign_package, verify_package

INPUTS = {"x": [1.0, 2.0], "y": [3.0, 4.0]}


def openssl(*arguments):
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)


def test_a_private_key_is_readable_by_its_owner_only(tmp_path):
    mask = os.umask(0)
    try:
        create_key_pair(tmp_path / "private.pem", tmp_path / "public.pem")
    finally:
        os.umask(mask)
    assert stat.S_IMODE((tmp_path / "private.pem").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "public.pem").stat().st_mode) == 0o644


@pytest.mark.parametrize("existing", ["private.pem", "public.pem"])
def test_keys_that_exist_are_not_overwritten(tmp_path, existing):
    (tmp_path / existing).write_text("precious")
    with pytest.raises(FileExistsError, match=existing):
        create_key_pair(tmp_path / "private.pem", tmp_path / "public.pem")
    assert [path.name for path in tmp_path.iterdir()] == [existing]
    assert (tmp_path / existing).read_text() == "precious"


def test_a_signed_package_is_verified_and_runs_as_before(package, keys):
    assert sign_package(package, keys.private) == keys.id
    assert verify_package(package, keys.public) == keys.id
    assert package_signers(package) == [keys.id]
    with load_neuropod(package) as model:
        assert model.infer(INPUTS)["out"].tolist() == [4, 6]


def test_signing_changes_no_other_file(package, keys):
    before = {name: read_file(package, name) for name, _ in list_files(package)}
    sign_package(package, keys.private)
    after = {name: read_file(package, name) for name, _ in list_files(package)}
    del after["signature.json"]
    assert after == before


def test_signing_twice_gives_the_same_package(signed, keys):
    before = {name: read_file(signed, name) for name, _ in list_files(signed)}
    sign_package(signed, keys.private)
    assert {name: read_file(signed, name) for name, _ in list_files(signed)} == before


def test_several_keys_may_sign(signed, keys, other_keys):
    with pytest.raises(InvalidPackageError) as caught:
        verify_package(signed, [other_keys.public])
    assert keys.id in str(caught.value)
    assert other_keys.id in str(caught.value)
    sign_package(signed, other_keys.private)
    assert package_signers(signed) == [keys.id, other_keys.id]
    assert verify_package(signed, [keys.public]) == keys.id
    assert verify_package(signed, [other_keys.public]) == other_keys.id


def test_a_package_without_manifest_is_signed_only_with_a_new_one(packages, tmp_path, keys):
    folder = tmp_path / "older"
    shutil.copytree(packages / "folder", folder)
    (folder / "manifest.json").unlink()
    with pytest.raises(InvalidPackageError, match=r"no manifest\.json.*--add-manifest"):
        sign_package(folder, keys.private)
    assert not (folder / "signature.json").exists()
    archive = tmp_path / "older.zip"
    shutil.make_archive(str(archive.with_suffix("")), "zip", folder)
    for package in (folder, archive):
        sign_package(package, keys.private, add_manifest=True)
        verify_manifest(package)
        verify_package(package, [keys.public])
        with load_neuropod(package) as model:
            assert model.config["format_version"] == 0


def test_the_added_manifest_is_the_one_a_packager_writes(packages, tmp_path, keys):
    folder = tmp_path / "package"
    shutil.copytree(packages / "folder", folder)
    (folder / "manifest.json").unlink()
    sign_package(folder, keys.private, add_manifest=True)
    added = json.loads((folder / "manifest.json").read_text())
    write_manifest(folder)
    written = json.loads((folder / "manifest.json").read_text())
    assert {**added, "format_version": 1} == written


def test_a_damaged_package_is_not_signed(packages, tmp_path, keys):
    folder = tmp_path / "package"
    shutil.copytree(packages / "folder", folder)
    (folder / "0" / "data" / "echo.json").write_text("{}")
    with pytest.raises(CorruptPackageError, match=r"can't sign .*echo\.json"):
        sign_package(folder, keys.private)
    assert package_signers(folder) == []


@pytest.mark.parametrize("as_zip", [True, False])
def test_packagers_sign(tmp_path, keys, as_zip):
    package = tmp_path / "package"
    create_echo_neuropod(
        neuropod_path=package, package_as_zip=as_zip, sign_with=keys.private, **ADDITION
    )
    assert verify_package(package, [keys.public]) == keys.id


def test_packagers_check_the_key_first(tmp_path, keys):
    def fail(draft):
        raise AssertionError("written")

    create_neuropod = packager(platform="echo")(fail)
    with pytest.raises(InvalidArgumentError, match="holds a public key"):
        create_neuropod(
            neuropod_path=tmp_path / "package",
            model_name="m",
            input_spec=[],
            output_spec=[],
            sign_with=keys.public,
        )


def test_a_link_to_a_package_stays_a_link(package, tmp_path, keys):
    link = tmp_path / "link"
    link.symlink_to(package)
    sign_package(link, keys.private)
    assert link.is_symlink()
    verify_package(package, [keys.public])


def test_a_failed_signature_leaves_the_package_and_nothing_beside_it(package, keys):
    before = sorted(package.parent.iterdir())
    with pytest.raises(InvalidArgumentError, match="holds a public key"):
        sign_package(package, keys.public)
    assert sorted(package.parent.iterdir()) == before
    assert package_signers(package) == []


def test_a_full_disk_leaves_the_package_as_it_was(package, keys, monkeypatch):
    def fail(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    before = {name: read_file(package, name) for name, _ in list_files(package)}
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match=rf"can't sign '{package}'.*No space left") as caught:
        sign_package(package, keys.private)
    assert caught.value.errno == errno.ENOSPC
    assert {name: read_file(package, name) for name, _ in list_files(package)} == before
    assert list(package.parent.iterdir()) == [package]


def test_keys_that_cannot_be_used_are_named(signed, keys, tmp_path):
    with pytest.raises(InvalidArgumentError, match="holds a private key"):
        verify_package(signed, [keys.private])
    with pytest.raises(NotFoundError, match=r"public key: .*none\.pem"):
        verify_package(signed, [tmp_path / "none.pem"])
    with pytest.raises(InvalidArgumentError, match="public_keys is an empty list"):
        verify_package(signed, [])
    with pytest.raises(InvalidArgumentError, match="public_keys is expected"):
        verify_package(signed, 7)
    with pytest.raises(NotFoundError, match="no package at"):
        verify_package(tmp_path / "none", [keys.public])


def test_keys_of_openssl_sign_and_its_own_checks_pass(signed_folder, tmp_path, keys):
    private, public = tmp_path / "o.pem", tmp_path / "o.public.pem"
    openssl("genpkey", "-algorithm", "ED25519", "-out", private)
    openssl("pkey", "-in", private, "-pubout", "-out", public)
    key_id = sign_package(signed_folder, private)
    verify_package(signed_folder, [public])

    message, signature = tmp_path / "message", tmp_path / "signature"
    manifest = (signed_folder / "manifest.json").read_bytes()
    message.write_bytes(b"Neuropod package signature 1\n" + manifest)
    entries = json.loads((signed_folder / "signature.json").read_text())["signatures"]
    for public_key, wanted in ((public, key_id), (keys.public, keys.id)):
        (entry,) = [entry for entry in entries if entry["key_id"] == wanted]
        signature.write_bytes(base64.b64decode(entry["signature"]))
        verify = ["pkeyutl", "-verify", "-pubin", "-inkey", public_key]
        openssl(*verify, "-rawin", "-in", message, "-sigfile", signature)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:1024"], "RSA"),
        (["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"], "elliptic curve"),
        (["genpkey", "-algorithm", "ED448"], "Ed448"),
        (
            ["genpkey", "-algorithm", "ED25519", "-aes128", "-pass", "pass:secret"],
            "encrypted with a passphrase",
        ),
    ],
)
def test_other_keys_of_openssl_are_refused_by_name(signed_folder, tmp_path, arguments, text):
    openssl(*arguments, "-out", tmp_path / "key.pem")
    with pytest.raises(InvalidArgumentError, match=text):
        sign_package(signed_folder, tmp_path / "key.pem")


def test_openssl_reads_our_keys(keys, tmp_path):
    openssl("pkey", "-in", keys.private, "-pubout", "-out", tmp_path / "public.pem")
    assert (tmp_path / "public.pem").read_text() == keys.public.read_text()
