import inspect
import sys

import pytest

import neuropod.packagers


@pytest.fixture
def distribution(tmp_path, monkeypatch):
    """Another distribution on `sys.path`, with a packager of its own."""
    info = tmp_path / "matrix_neuropod-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: matrix-neuropod\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[neuropod.packagers]\nmatrix = matrix_packager:create_matrix_neuropod\n"
    )
    (tmp_path / "matrix_packager.py").write_text(
        "from neuropod.packaging import packager\n"
        "@packager(platform='matrix')\n"
        "def create_matrix_neuropod(draft):\n"
        "    '''Packages nothing.'''\n"
        "    (draft.data_folder / 'matrix.txt').write_text('1')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    yield
    sys.modules.pop("matrix_packager", None)
    vars(neuropod.packagers).pop("create_matrix_neuropod", None)


def test_another_distribution_adds_its_packager(distribution, tmp_path):
    from neuropod.packagers import create_matrix_neuropod

    create_matrix_neuropod(
        neuropod_path=tmp_path / "a", model_name="m", input_spec=[], output_spec=[]
    )
    assert "create_matrix_neuropod" in dir(neuropod.packagers)


def test_probing_for_names_works():
    assert not hasattr(neuropod.packagers, "create_nonsense_neuropod")
    assert hasattr(neuropod.packagers, "create_torchscript_neuropod")
    assert inspect.getmodule(neuropod.packagers) is neuropod.packagers


def test_an_unknown_packager_lists_those_there_are():
    with pytest.raises(AttributeError, match=r"installed: .*create_torchscript_neuropod"):
        neuropod.packagers.create_nonsense_neuropod  # noqa: B018


def test_importing_the_module_imports_no_framework():
    import subprocess

    code = "import neuropod.packagers, neuropod.cli.main, sys; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
