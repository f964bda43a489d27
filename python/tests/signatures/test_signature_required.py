import shutil
import zipfile

import pytest

from neuropod import CorruptPackageError, InvalidArgumentError, InvalidPackageError, load_neuropod
from neuropod._native import list_files, read_file
from neuropod.packaging.manifest import write_manifest
from neuropod.signing import sign_package, verify_package

INPUTS = {"x": [1.0, 2.0], "y": [3.0, 4.0]}


def test_a_package_signed_by_a_required_key_runs(signed, keys, other_keys):
    for required in (keys.public, str(keys.public), [other_keys.public, keys.public]):
        with load_neuropod(signed, require_signature=required) as model:
            assert model.infer(INPUTS)["out"].tolist() == [4, 6]


def test_its_rules_for_calls_are_those_of_the_package(signed, keys):
    with load_neuropod(signed, require_signature=keys.public) as model:
        assert model.config["format_version"] == 1


def test_an_unsigned_package_is_refused(package, keys):
    with pytest.raises(InvalidPackageError, match=rf"isn't signed.*{keys.id}.*neuropod sign"):
        load_neuropod(package, require_signature=keys.public)


def test_a_package_signed_by_another_key_is_refused_with_both_ids(package, keys, other_keys):
    sign_package(package, other_keys.private)
    with pytest.raises(InvalidPackageError, match=rf"{other_keys.id}.*{keys.id}"):
        load_neuropod(package, require_signature=keys.public)


def test_a_package_without_manifest_is_refused(signed_folder, keys):
    (signed_folder / "manifest.json").unlink()
    with pytest.raises(InvalidPackageError, match=r"no manifest\.json"):
        load_neuropod(signed_folder, require_signature=keys.public)


@pytest.mark.parametrize("options", [{}, {"verify_hashes": False}])
def test_a_change_of_any_file_is_found_whatever_verify_hashes_says(signed_folder, keys, options):
    for name, size in list_files(signed_folder):
        file = signed_folder / name
        content = file.read_bytes()
        for position in {0, size // 2, size - 1}:
            changed = bytearray(content)
            changed[position] ^= 1
            file.write_bytes(changed)
            with pytest.raises((CorruptPackageError, InvalidPackageError)) as caught:
                load_neuropod(signed_folder, require_signature=keys.public, **options)
            # A changed key id in signature.json is another key's signature.
            assert name in str(caught.value) or "is signed by key" in str(caught.value)
        file.write_bytes(content)
    load_neuropod(signed_folder, require_signature=keys.public, **options).close()


@pytest.mark.parametrize("name", ["0/code/evil.py", "evil", "signature.json.bak", "0/ops/evil.so"])
def test_files_that_were_added_are_refused(signed_folder, keys, name):
    (signed_folder / name).parent.mkdir(exist_ok=True)
    (signed_folder / name).write_text("evil")
    with pytest.raises(CorruptPackageError, match=f"'{name}' isn't listed"):
        load_neuropod(signed_folder, require_signature=keys.public, verify_hashes=False)


def test_a_new_manifest_does_not_fit_the_old_signature(signed_folder, keys):
    (signed_folder / "0" / "data" / "echo.json").write_text('{"outputs": {}}')
    write_manifest(signed_folder)
    load_neuropod(signed_folder, load_model_at_construction=False).close()
    with pytest.raises(CorruptPackageError, match=r"doesn't fit manifest\.json"):
        load_neuropod(signed_folder, require_signature=keys.public)


def test_a_signature_of_another_package_does_not_fit(packages, signed_folder, keys, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(packages / "folder", other)
    (other / "config.json").write_text((other / "config.json").read_text() + "\n")
    write_manifest(other)
    shutil.copy(signed_folder / "signature.json", other)
    with pytest.raises(CorruptPackageError, match="another package's"):
        load_neuropod(other, require_signature=keys.public)


@pytest.mark.parametrize(
    ("text", "error", "match"),
    [
        ("", CorruptPackageError, "no valid JSON"),
        ("[]", InvalidPackageError, "must hold an object"),
        ('{"signature_version": 9}', InvalidPackageError, "later Neuropod"),
        ('{"signature_version": 1, "signatures": []}', InvalidPackageError, "at least one"),
    ],
)
def test_a_malformed_signature_file_is_refused(signed_folder, keys, text, error, match):
    (signed_folder / "signature.json").write_text(text)
    with pytest.raises(error, match=rf"signature\.json.*{match}"):
        load_neuropod(signed_folder, require_signature=keys.public)
    # Whoever doesn't ask for a signature isn't stopped by one.
    load_neuropod(signed_folder).close()


@pytest.mark.parametrize(
    "name", ["evil", "config.json", "../evil", "/evil", "0\\evil", "Config.json"]
)
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_entries_added_to_a_signed_archive_are_refused(packages, tmp_path, keys, name):
    archive = tmp_path / "package.zip"
    shutil.copy(packages / "zip", archive)
    sign_package(archive, keys.private)
    with zipfile.ZipFile(archive, "a") as output:
        output.writestr(name, "{}")
    with pytest.raises((CorruptPackageError, InvalidPackageError)):
        load_neuropod(archive, require_signature=keys.public, verify_hashes=False)


def test_a_signed_folder_may_be_zipped_and_back(signed_folder, tmp_path, keys):
    archive = shutil.make_archive(str(tmp_path / "zipped"), "zip", signed_folder)
    load_neuropod(archive, require_signature=keys.public).close()
    shutil.unpack_archive(archive, tmp_path / "unpacked")
    load_neuropod(tmp_path / "unpacked", require_signature=keys.public).close()


def test_the_model_that_is_loaded_later_is_the_one_that_was_verified(signed_folder, keys):
    model = load_neuropod(
        signed_folder, require_signature=keys.public, load_model_at_construction=False
    )
    (signed_folder / "0" / "data" / "echo.json").write_text('{"outputs": {}}')
    with pytest.raises(CorruptPackageError, match=r"echo\.json"):
        model.load_model()


def test_an_empty_list_of_keys_is_an_error_not_a_permission(package):
    with pytest.raises(InvalidArgumentError, match="require_signature is an empty list"):
        load_neuropod(package, require_signature=[])
    load_neuropod(package, require_signature=None).close()


def test_keys_that_cannot_be_used_stop_the_load(signed_folder, keys, tmp_path):
    with pytest.raises(InvalidArgumentError, match="holds a private key"):
        load_neuropod(signed_folder, require_signature=keys.private)
    with pytest.raises(FileNotFoundError, match="public key"):
        load_neuropod(signed_folder, require_signature=[keys.public, tmp_path / "none.pem"])


def test_no_byte_of_a_signed_archive_can_be_changed_unseen(packages, tmp_path, keys):
    archive = tmp_path / "package.zip"
    shutil.copy(packages / "zip", archive)
    sign_package(archive, keys.private)
    content = archive.read_bytes()
    files = {name: read_file(archive, name) for name, _ in list_files(archive)}
    files.pop("signature.json")
    for position in range(len(content)):
        changed = bytearray(content)
        changed[position] ^= 1 << (position % 8)
        archive.write_bytes(changed)
        try:
            verify_package(archive, [keys.public])
        except (CorruptPackageError, InvalidPackageError):
            continue
        # A byte that means nothing, such as a time: what is read is what was signed.
        read = {name: read_file(archive, name) for name, _ in list_files(archive)}
        read.pop("signature.json")
        assert read == files, position


def test_a_swap_needs_a_signature_too(signed, packages, keys):
    with load_neuropod(signed, swappable=True, require_signature=keys.public) as model:
        with pytest.raises(InvalidPackageError, match="isn't signed"):
            model.swap(packages / "folder")
        assert model.infer(INPUTS)["out"].tolist() == [4, 6]
        model.swap(signed)
        assert model.infer(INPUTS)["out"].tolist() == [4, 6]
