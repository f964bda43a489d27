"""A plug-in's wheel: the plug-in that was built for this environment's framework, ready-made.

It lands beside the core's library, where the core looks anyway. Its manifest says where the framework's
libraries lie inside the framework's Python module, and their build-ids
(docs/formats/backend_manifest.md).
"""

import json
import re
import shutil
import sys
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, Final

from elftools.elf.elffile import ELFFile
from elftools.elf.sections import NoteSection

from neuropod.backend_installer import PluginSources, find_sources, install_backend
from neuropod.backend_installer.framework import Framework, find_framework
from wheels.errors import WheelError, run

_BESIDE_THE_LIBRARY: Final = Path("neuropod", "lib", "neuropod", "backends")


@dataclass(frozen=True)
class PluginWheel:
    """A plug-in's wheel as packed."""

    path: Path
    framework_libraries: tuple[str, ...]
    """File names of the libraries that the framework's distribution brings."""


def build_plugin_wheel(platform: str, licence: Path, work: Path, target: Path) -> PluginWheel:
    """Packs the plug-in for `platform` into a wheel in `target`; `work` is emptied.

    The plug-in is the one that `neuropod backends install` keeps for this environment; it is built
    if it isn't there or not current.
    """
    sources = find_sources(platform)
    framework = find_framework(sources)
    built = install_backend(platform, report=lambda line: print(f"  {line}", flush=True))
    shutil.rmtree(work, ignore_errors=True)
    tree = work / "tree"
    folder = tree / _BESIDE_THE_LIBRARY / f"{platform}-{framework.version}"
    folder.mkdir(parents=True)
    manifest = json.loads((built.directory / "backend.json").read_bytes())
    library = folder / str(manifest["library"])
    shutil.copyfile(built.directory / library.name, library)
    run(["strip", "--strip-unneeded", library])
    libraries = [Path(path) for path in manifest["libraries"]]
    manifest |= _place_in_module(libraries, framework.module_folder)
    (folder / "backend.json").write_text(json.dumps(manifest, indent=2) + "\n")
    _write_metadata(tree, sources, framework, licence)
    return PluginWheel(_pack(tree, target), tuple(path.name for path in libraries))


def _place_in_module(libraries: list[Path], module_folder: Path) -> dict[str, Any]:
    """The manifest's keys for libraries that lie in the framework's module."""
    outside = [path for path in libraries if not path.is_relative_to(module_folder)]
    if outside:
        raise WheelError(
            f"the plug-in needs {outside[0]}, which isn't part of {module_folder}: a wheel can't say "
            "where it will lie on another machine"
        )
    return {
        "libraries": [str(path.relative_to(module_folder)) for path in libraries],
        "libraries_relative_to": "python_module",
        "library_build_ids": [_build_id(path) for path in libraries],
    }


def _build_id(library: Path) -> str:
    with library.open("rb") as file:
        for section in ELFFile(file).iter_sections():
            if isinstance(section, NoteSection):
                for note in section.iter_notes():
                    if note["n_type"] == "NT_GNU_BUILD_ID":
                        return str(note["n_desc"])
    raise WheelError(f"{library} has no build-id, so a wheel for just this build can't be made")


def _write_metadata(
    tree: Path, sources: PluginSources, framework: Framework, licence: Path
) -> None:
    core = metadata.version("neuropod")
    name = f"neuropod-backend-{sources.platform}"
    local = re.sub(r"[^0-9A-Za-z]+", ".", framework.version)
    version = f"{core}+{sources.framework}{local}"
    folder = tree / f"{name.replace('-', '_')}-{version}.dist-info"
    (folder / "licenses").mkdir(parents=True)
    shutil.copyfile(licence, folder / "licenses" / licence.name)
    # Build-ids differ between a framework's wheels for different Pythons, hence the tag.
    tag = f"cp{sys.version_info[0]}{sys.version_info[1]}-none-linux_x86_64"
    (folder / "WHEEL").write_text(
        f"Wheel-Version: 1.0\nGenerator: neuropod\nRoot-Is-Purelib: false\nTag: {tag}\n"
    )
    (folder / "METADATA").write_text(
        f"Metadata-Version: 2.4\n"
        f"Name: {name}\n"
        f"Version: {version}\n"
        f"Summary: Neuropod's plug-in for platform {sources.platform}, ready-made for "
        f"{sources.framework} {framework.version}\n"
        f"License-Expression: Apache-2.0\n"
        f"License-File: {licence.name}\n"
        f"Requires-Python: >=3.11\n"
        f"Requires-Dist: neuropod~={core}\n"
        f"Requires-Dist: {_installed_distribution(sources)}=={framework.version}\n"
    )


def _installed_distribution(sources: PluginSources) -> str:
    for name in sources.distributions:
        try:
            return metadata.metadata(name)["Name"]
        except metadata.PackageNotFoundError:
            continue
    raise WheelError(f"none of {', '.join(sources.distributions)} is installed")


def _pack(tree: Path, target: Path) -> Path:
    target.mkdir(parents=True, exist_ok=True)
    before = set(target.iterdir())
    (name,) = (path.name.removesuffix(".dist-info") for path in tree.glob("*.dist-info"))
    for earlier in target.glob(f"{name}-*.whl"):
        earlier.unlink()
        before.discard(earlier)
    run([sys.executable, "-m", "wheel", "pack", "--dest-dir", target, tree])
    (made,) = set(target.iterdir()) - before
    return made
