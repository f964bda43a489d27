"""An installed Neuropod: the release build in a temporary prefix.

The tests that use it look neither into the source tree's `source/` nor at the build's own targets.
"""

from pathlib import Path

import pytest
from installed_prefix import BUILD, run


@pytest.fixture(scope="session")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    assert (BUILD / "lib").is_dir(), f"{BUILD} isn't built; `make setup` builds it"
    path = tmp_path_factory.mktemp("prefix with a space")
    run(["cmake", "--install", BUILD, "--prefix", path])
    return path


@pytest.fixture(scope="session")
def libdir(prefix: Path) -> Path:
    (library,) = prefix.glob("lib*/**/libneuropod.so")
    return library.parent


@pytest.fixture(scope="session")
def headers(prefix: Path) -> list[str]:
    include = prefix / "include"
    return sorted(str(path.relative_to(include)) for path in include.rglob("*.hh"))
