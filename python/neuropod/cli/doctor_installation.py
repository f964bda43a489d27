"""Neuropod itself, Python's packages, plug-ins and what builds them."""

import platform
import sys
from importlib import metadata
from typing import TYPE_CHECKING, Final

import neuropod
from neuropod.cli.doctor_finding import Finding, Level
from neuropod.errors import NeuropodError

if TYPE_CHECKING:
    from neuropod.cli.backend_view import BackendView

_EXTRAS: Final = {
    "pillow": ("images", "`neuropod run` reads no pictures"),
    "matplotlib": ("plots", "`neuropod bench` and `evaluate` draw no plots"),
    "pyarrow": ("parquet", "`neuropod evaluate` reads no Parquet files"),
    "ml_dtypes": ("bfloat16", "NumPy has no bfloat16"),
}
"""Optional distributions: the extra that brings each, and what is missing without it."""


def check_installation() -> list[Finding]:
    library = _library()
    python = f"{platform.python_version()}, {sys.executable}"
    findings = [library, Finding("python", python), _numpy(), *_extras(), *_frameworks()]
    if library.level is not Level.PROBLEM:
        findings += _plugins()
    return [*findings, _toolchain()]


def _library() -> Finding:
    try:
        from neuropod import _native
    except ImportError as error:
        return Finding(
            "neuropod",
            f"{neuropod.__version__}, but its native module can't be loaded: {error}",
            Level.PROBLEM,
            f"`{sys.executable} -m pip install --force-reinstall neuropod`",
        )
    text = f"{neuropod.__version__}, ABI {_native.ABI_VERSION}, {_native.library_path()}"
    if _native.library_version() != neuropod.__version__:
        return Finding(
            "neuropod",
            f"{text}, which is of version {_native.library_version()}",
            Level.PROBLEM,
            f"`{sys.executable} -m pip install --force-reinstall neuropod`",
        )
    return Finding("neuropod", text)


def _numpy() -> Finding:
    try:
        return Finding("numpy", metadata.version("numpy"))
    except metadata.PackageNotFoundError:
        remedy = f"`{sys.executable} -m pip install numpy`"
        return Finding("numpy", "not installed", Level.PROBLEM, remedy)


def _extras() -> list[Finding]:
    findings = []
    for name, (extra, lack) in _EXTRAS.items():
        try:
            findings.append(Finding(name, metadata.version(name)))
        except metadata.PackageNotFoundError:
            remedy = f"`{sys.executable} -m pip install 'neuropod[{extra}]'`"
            findings.append(Finding(name, f"not installed: {lack}", Level.NOTE, remedy))
    return findings


def _frameworks() -> list[Finding]:
    """The frameworks that a plug-in could be built against, found without importing them."""
    from neuropod.backend_installer import find_sources, shipped_platforms
    from neuropod.backend_installer.framework import find_framework

    findings = []
    try:
        platforms = shipped_platforms()
    except NeuropodError as error:
        return [Finding("framework", error.message, Level.NOTE)]
    for name in platforms:
        try:
            sources = find_sources(name)
            framework = find_framework(sources)
            where = f"{sources.framework} {framework.version}, {framework.module_folder}"
            findings.append(Finding("framework", where))
        except NeuropodError as error:
            text, _, remedy = error.message.partition("; ")
            findings.append(Finding("framework", text, Level.NOTE, remedy))
    return findings


def _plugins() -> list[Finding]:
    from neuropod.cli.backend_view import find_backend_views

    views, searched = find_backend_views()
    findings = [_plugin(view) for view in views]
    if not _brings_a_framework([view for view in views if not view.problem]):
        findings.append(_no_plugin())
    return [*findings, *(Finding("searched", place) for place in searched)]


def _plugin(view: "BackendView") -> Finding:
    what = f"{view.platform} ({view.framework} {view.version}, ABI {view.abi}) in {view.directory}"
    if not view.problem:
        return Finding("plug-in", what)
    return Finding("plug-in", f"{what}: {view.problem}", Level.NOTE, _remedy_for(view))


def _remedy_for(view: "BackendView") -> str:
    from neuropod.backend_installer import shipped_platforms

    if "`neuropod " in view.problem:
        return ""  # the reason names the command itself
    if view.platform in shipped_platforms():
        return f"`neuropod backends install {view.platform}` builds one for this environment"
    return f"remove {view.directory}, or get one that fits"


def _brings_a_framework(usable: "list[BackendView]") -> bool:
    """Whether one of the plug-ins runs models of a framework, and not only those of tests."""
    from neuropod import _native

    with_libraries = {
        candidate.manifest.directory
        for candidate in _native.find_backends().candidates
        if candidate.manifest.libraries or candidate.manifest.python_module
    }
    return any(view.directory in with_libraries for view in usable)


def _no_plugin() -> Finding:
    """None can be used: the command that adds one, for a framework that is there if possible."""
    from neuropod.backend_installer import find_sources, shipped_platforms
    from neuropod.backend_installer.framework import find_framework

    remedy = ""
    for name in shipped_platforms():
        sources = find_sources(name)
        try:
            find_framework(sources)
        except NeuropodError:
            install = f"`{sys.executable} -m pip install {sources.distributions[0]}`"
            remedy = remedy or f"{install}, then `neuropod backends install {name}`"
            continue
        remedy = f"`neuropod backends install {name}`"
        break
    return Finding(
        "plug-ins", "none that runs a framework's models can be used", Level.PROBLEM, remedy
    )


def _toolchain() -> Finding:
    from neuropod.backend_installer.toolchain import find_toolchain

    try:
        found = find_toolchain()
    except NeuropodError as error:
        text, _, remedy = error.message.partition("; ")
        return Finding("compilers", text, Level.NOTE, remedy)
    generator = "Ninja" if found.generator == "Ninja" else "make"
    return Finding("compilers", f"{found.environment['CXX']}, {found.cmake}, {generator}")
