"""The Debian packages of `make deb`: installed by dpkg into a root of their own, used, and removed.

The root's database is a copy of this machine's, so dpkg checks the dependencies; nothing is installed
on the machine itself.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from installed_prefix import EXAMPLES, ROOT, check_output_of_example, configure, run

pytestmark = pytest.mark.slow

RUNTIME, HEADERS = "libneuropod1", "libneuropod-dev"


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Package files by package name."""
    target = tmp_path_factory.mktemp("debs")
    run([ROOT / "tools" / "build_debs.sh", target])
    return {path.name.partition("_")[0]: path for path in target.glob("*.deb")}


@pytest.fixture(scope="module")
def root(packages: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root in which dpkg has installed both packages."""
    folder = tmp_path_factory.mktemp("root")
    database = folder / "var" / "lib" / "dpkg"
    for name in ("info", "updates", "triggers"):
        (database / name).mkdir(parents=True)
    shutil.copyfile("/var/lib/dpkg/status", database / "status")
    # What the packages' scripts call: the machine's own loader cache isn't theirs to change.
    (folder / "bin").mkdir()
    (folder / "bin" / "ldconfig").write_text("#!/bin/sh\n")
    (folder / "bin" / "ldconfig").chmod(0o755)
    dpkg(folder, "--install", str(packages[RUNTIME]), str(packages[HEADERS]))
    return folder


def dpkg(root: Path, *arguments: str) -> str:
    prefix = [] if os.geteuid() == 0 else ["unshare", "--map-root-user"]
    path = f"{root}/bin:{os.environ['PATH']}:/usr/sbin:/sbin"
    options = (f"--root={root}", "--force-script-chrootless", f"--log={root}/dpkg.log")
    return run([*prefix, "dpkg", *options, *arguments], env={"PATH": path})


def library_folder(root: Path) -> Path:
    (library,) = root.glob("usr/lib/*/libneuropod.so.1")
    return library.parent


def test_dependencies_are_those_of_the_base_system(packages: dict[str, Path]) -> None:
    def field(package: str, name: str) -> str:
        return run(["dpkg-deb", "--field", packages[package], name]).strip()

    wanted = {re.sub(r" .*", "", part) for part in field(RUNTIME, "Depends").split(", ")}
    assert wanted == {"libc6", "libgcc-s1", "libstdc++6"}
    version = field(RUNTIME, "Version")
    assert field(HEADERS, "Depends") == f"{RUNTIME} (= {version})"


def test_each_has_its_licence_and_changelog(root: Path) -> None:
    for package in (RUNTIME, HEADERS):
        folder = root / "usr" / "share" / "doc" / package
        licence = (folder / "copyright").read_text()
        assert "/usr/share/common-licenses/Apache-2.0" in licence
        assert "nlohmann-json" in licence
        assert "neuropod (" in run(["gzip", "-dc", folder / "changelog.Debian.gz"])


def test_the_runtime_package_has_no_headers(packages: dict[str, Path]) -> None:
    listed = run(["dpkg-deb", "--contents", packages[RUNTIME]])
    assert "libneuropod.so.1" in listed
    assert "echo/backend.json" in listed
    assert ".hh" not in listed


def test_an_application_builds_with_cmake(root: Path, tmp_path: Path) -> None:
    configure(EXAMPLES / "cpp", tmp_path, f"-DCMAKE_PREFIX_PATH={root}/usr")
    run(["cmake", "--build", tmp_path])
    check_output_of_example(tmp_path / "neuropod_every_call")


def test_pkg_config_knows_the_place(root: Path, tmp_path: Path) -> None:
    env = {"PKG_CONFIG_PATH": str(library_folder(root) / "pkgconfig")}
    flags = run(["pkg-config", "--cflags", "--libs", "neuropod"], env=env).split()
    (tmp_path / "main.cc").write_text(
        "#include <neuropod/version.hh>\nint main() { return *neuropod::library_version() == 0; }\n"
    )
    program = tmp_path / "program"
    run(["g++", "-std=c++17", tmp_path / "main.cc", *flags, "-o", program])
    run([program], env={"LD_LIBRARY_PATH": str(library_folder(root))})


def test_removing_leaves_nothing(root: Path) -> None:
    """Last in this file: the others use what it removes."""
    done = subprocess.run(
        ["dpkg", f"--root={root}", "--status", HEADERS], capture_output=True, text=True, check=False
    )
    assert "Status: install ok installed" in done.stdout
    dpkg(root, "--purge", HEADERS, RUNTIME)
    assert [path for path in (root / "usr").rglob("*") if path.is_file()] == []
