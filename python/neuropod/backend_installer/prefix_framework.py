"""A framework that lies in some folder: an unpacked archive, or a distribution's packages.

Known layouts of a folder DIR: `DIR/include` and `DIR/lib` (the archives that frameworks publish, the
Python module's own folder), the same below `DIR/usr` (Debian's packages, unpacked by `dpkg -x`, with
libraries in `lib/<architecture>`), or below one folder of DIR (an archive's only entry).
"""

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

from neuropod.backend_installer.framework import Framework, release_of, semver_of
from neuropod.backend_installer.shared_libraries import find_dependencies
from neuropod.backend_installer.sources import PluginSources, PrefixLayout
from neuropod.errors import BackendNotFoundError, InvalidArgumentError

_ARCHIVE_VERSION = "build-version"


def find_framework_in_prefix(sources: PluginSources, prefix: Path) -> Framework:
    """Looks the plug-in's framework up in `prefix`.

    BackendNotFoundError says what is missing there, or why it can't be used.
    """
    layout = sources.prefix_layout
    if layout is None:
        raise InvalidArgumentError(
            f"the plug-in for platform '{sources.platform}' can be built against the {sources.framework} "
            "of a Python environment only, not from a prefix"
        )
    prefix = prefix.absolute()
    if not prefix.is_dir():
        raise InvalidArgumentError(f"--from-prefix: there is no folder {prefix}")
    libraries = _find_library_folder(sources, layout, prefix)
    headers = _find_header_folder(sources, layout, prefix)
    version = _find_version(layout, prefix, headers)
    _check_version(sources, layout, version, prefix)
    _check_abi(sources, layout, version, libraries)
    own = [libraries / f"lib{name}.so" for name in layout.libraries]
    dependencies = find_dependencies(own, prefix)
    return Framework(
        version=version,
        semver=semver_of(version),
        module_folder=libraries,
        library_hash=_library_hash([*dependencies, *own]),
        include_folder=headers,
        library_folder=libraries,
        dependency_folders=tuple(sorted({path.parent for path in dependencies})),
    )


def _roots(prefix: Path) -> Iterator[Path]:
    yield from (prefix, prefix / "usr", prefix / "usr" / "local")
    yield from sorted(path for path in prefix.iterdir() if path.is_dir() and path.name != "usr")


def _find_library_folder(sources: PluginSources, layout: PrefixLayout, prefix: Path) -> Path:
    for root in _roots(prefix):
        for pattern in ("lib", "lib64", "lib/*-linux-*"):
            for folder in sorted(root.glob(pattern)):
                if all((folder / f"lib{name}.so").is_file() for name in layout.libraries):
                    return folder
    wanted = ", ".join(f"lib{name}.so" for name in layout.libraries)
    raise BackendNotFoundError(
        f"{prefix} holds no {sources.framework}: {wanted} are not together in any of its folders "
        "lib, lib64, lib/<architecture>, usr/lib, usr/lib/<architecture>; of Debian's packages, unpack "
        "the library's and the -dev package, which brings the .so links"
    )


def _find_header_folder(sources: PluginSources, layout: PrefixLayout, prefix: Path) -> Path:
    for root in _roots(prefix):
        folder = root / "include"
        if (folder / layout.header).is_file():
            return folder
    raise BackendNotFoundError(
        f"{prefix} holds {sources.framework}'s libraries but not its headers: there is no "
        f"include/{layout.header} in it; building a plug-in needs them (Debian has them in a -dev "
        "package; archives for runtime use only leave them out)"
    )


def _find_version(layout: PrefixLayout, prefix: Path, headers: Path) -> str:
    archive = headers.parent / _ARCHIVE_VERSION
    if archive.is_file():
        return archive.read_text(errors="replace").strip()
    header = headers / layout.version_header
    macro = re.escape(layout.version_macro)
    pattern = rf'#\s*define\s+{macro}\s*\\?\s*"([^"]+)"'
    found = re.search(pattern, header.read_text(errors="replace")) if header.is_file() else None
    if found is None:
        raise BackendNotFoundError(
            f"the version of what lies in {prefix} can't be told: there is neither a file "
            f"{archive} nor {layout.version_macro} in {header}"
        )
    return found[1]


def _check_version(
    sources: PluginSources, layout: PrefixLayout, version: str, prefix: Path
) -> None:
    if release_of(version) < release_of(layout.minimum_version):
        raise BackendNotFoundError(
            f"{sources.framework} {version} in {prefix} is too old for the plug-in for platform "
            f"'{sources.platform}', whose sources need {layout.minimum_version} or newer"
        )


def _check_abi(sources: PluginSources, layout: PrefixLayout, version: str, folder: Path) -> None:
    library = folder / f"lib{layout.abi_library}.so"
    if re.search(layout.abi_symbol.encode(), library.read_bytes()) is None:
        raise BackendNotFoundError(
            f"{sources.framework} {version} in {folder} was built with the old C++ ABI "
            "(_GLIBCXX_USE_CXX11_ABI=0), whose std::string isn't ours, so a plug-in for it can't be "
            "linked; take a build with the new one: archives named cxx11-abi, a distribution's "
            "packages"
        )


def _library_hash(libraries: list[Path]) -> str:
    """Over places, sizes and times: the contents are too large to read each time."""
    digest = hashlib.sha256()
    for path in libraries:
        state = path.stat()
        digest.update(f"{path}={state.st_size}={state.st_mtime_ns}\n".encode())
    return digest.hexdigest()[:12]
