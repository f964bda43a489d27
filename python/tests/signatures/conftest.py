import shutil
import sys
from pathlib import Path

import pytest

# The packager of the framework-free platform is shared with the packaging tests.
sys.path.append(str(Path(__file__).parent.parent / "packaging"))

from echo_packager import ADDITION, create_echo_neuropod

from neuropod.signing import create_key_pair, sign_package


class Keys:
    """A pair of keys on disk."""

    def __init__(self, folder, name):
        self.private = folder / f"{name}.private.pem"
        self.public = folder / f"{name}.public.pem"
        self.id = create_key_pair(self.private, self.public)


@pytest.fixture(scope="session")
def keys(tmp_path_factory):
    return Keys(tmp_path_factory.mktemp("keys"), "release")


@pytest.fixture(scope="session")
def other_keys(tmp_path_factory):
    return Keys(tmp_path_factory.mktemp("keys"), "other")


@pytest.fixture(scope="session")
def packages(tmp_path_factory):
    """out = x + y, as a folder and as a zip; not to be changed."""
    root = tmp_path_factory.mktemp("packages")
    x = [1.0, 2.0]
    for name, as_zip in (("folder", False), ("zip", True)):
        create_echo_neuropod(
            neuropod_path=root / name,
            package_as_zip=as_zip,
            test_input_data={"x": x, "y": x},
            **ADDITION,
        )
    return root


@pytest.fixture(params=["folder", "zip"])
def package(request, packages, tmp_path):
    """An unsigned package of the test's own."""
    target = tmp_path / request.param
    source = packages / request.param
    if source.is_dir():
        shutil.copytree(source, target)
    else:
        shutil.copy(source, target)
    return target


@pytest.fixture
def signed(package, keys):
    sign_package(package, keys.private)
    return package


@pytest.fixture
def signed_folder(packages, tmp_path, keys):
    target = tmp_path / "signed_folder"
    shutil.copytree(packages / "folder", target)
    sign_package(target, keys.private)
    return target
