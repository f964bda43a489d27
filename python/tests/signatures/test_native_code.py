import shutil

import pytest

from neuropod import CorruptPackageError, InvalidPackageError, load_neuropod
from neuropod.cli.main import main
from neuropod.packaging.manifest import write_manifest


@pytest.fixture
def with_operator(packages, tmp_path):
    """A package that brings a library which isn't one."""
    folder = tmp_path / "with_operator"
    shutil.copytree(packages / "folder", folder)
    (folder / "0" / "ops").mkdir(exist_ok=True)
    (folder / "0" / "ops" / "op.so").write_bytes(b"\x7fELF")
    config = (folder / "config.json").read_text()
    assert '"custom_ops": []' in config
    (folder / "config.json").write_text(
        config.replace('"custom_ops": []', '"custom_ops": ["op.so"]')
    )
    write_manifest(folder)
    return folder


def test_packages_without_compiled_code_load(package):
    load_neuropod(package, allow_native_code=False).close()


def test_custom_operators_are_refused_when_they_are_not_wanted(with_operator):
    load_neuropod(with_operator, load_model_at_construction=False).close()
    with pytest.raises(InvalidPackageError) as caught:
        load_neuropod(with_operator, allow_native_code=False, load_model_at_construction=False)
    text = str(caught.value)
    for part in (str(with_operator), "'op.so'", "allow_native_code=false", "rights"):
        assert part in text


def test_a_library_that_the_configuration_does_not_name_is_refused(packages, tmp_path):
    folder = tmp_path / "hidden"
    shutil.copytree(packages / "folder", folder)
    (folder / "0" / "ops").mkdir(exist_ok=True)
    (folder / "0" / "ops" / "hidden.so").write_bytes(b"")
    with pytest.raises(CorruptPackageError):
        load_neuropod(folder)
    with pytest.raises(InvalidPackageError, match=r"0/ops/hidden\.so.*doesn't name"):
        load_neuropod(folder, allow_native_code=False, verify_hashes=False)


def test_the_command_line_has_the_option(with_operator, capsys):
    assert main(["run", str(with_operator), "--no-native-code", "-i", "none.json"]) == 3
    assert "op.so" in capsys.readouterr().err
