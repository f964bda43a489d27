"""Environments that hold one framework each, beside the plug-ins that are built against them.

`<data>/neuropod/environments/<framework>-<version>/` is an ordinary virtual environment, made by the
running interpreter and filled by pip with pip's own settings: its index, find-links and proxies. A file
written last tells a whole environment from what an interrupted installation left.
"""

import importlib.util
import json
import re
import shutil
import subprocess
import sys
import sysconfig
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from neuropod.backend_installer.build import Report
from neuropod.backend_installer.errors import BackendInstallError
from neuropod.backend_installer.framework import release_of
from neuropod.backend_installer.plugin_folder import ENVIRONMENTS_NAME
from neuropod.backend_installer.sources import PluginSources
from neuropod.errors import BackendNotFoundError, InvalidArgumentError

_COMPLETE_NAME: Final = "neuropod-environment.json"
_VERSION: Final = re.compile(r"\d+(\.\d+)*[0-9A-Za-z.+!-]*")
_LOG_LINES: Final = 25
_HEARTBEAT_SECONDS: Final = 10.0


@dataclass(frozen=True)
class PrivateEnvironment:
    """One environment that is whole."""

    folder: Path
    site_packages: Path


def environments_folder(plugin_folder: Path) -> Path:
    """Beside the folder of plug-ins."""
    return plugin_folder.parent / ENVIRONMENTS_NAME


def ensure_environment(
    sources: PluginSources, version: str, plugin_folder: Path, report: Report
) -> tuple[PrivateEnvironment, bool]:
    """The environment with `version` of the plug-in's framework, and whether it was made.

    It isn't if it was there and whole. The folder of plug-ins must be locked. Nothing is left of one
    that fails. Raises InvalidArgumentError for what is no version, BackendNotFoundError for one that
    is too old, BackendInstallError with the end of pip's output.
    """
    _check_version(sources, version)
    folder = environments_folder(plugin_folder) / f"{sources.distributions[0]}-{version}"
    whole = read_environment(folder)
    if whole is not None:
        report(f"using {folder}")
        return whole, False
    shutil.rmtree(folder, ignore_errors=True)
    requirement = f"{sources.distributions[0]}=={version}"
    log_path = plugin_folder / ".logs" / f"{folder.name}.log"
    log_path.parent.mkdir(parents=True, exist_ok=True)
    log_path.write_bytes(b"")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        has_pip = importlib.util.find_spec("pip") is not None
        options = ["--without-pip"] if has_pip else []
        _run(
            "making an environment",
            [sys.executable, "-m", "venv", *options, str(folder)],
            log_path,
            report,
        )
        _run(f"pip install {requirement}", _pip(folder, has_pip, requirement), log_path, report)
        site_packages = _site_packages(folder)
        record = {"requirement": requirement, "site_packages": str(site_packages)}
        (folder / _COMPLETE_NAME).write_text(json.dumps(record, indent=2))
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return PrivateEnvironment(folder, site_packages), True


def read_environment(folder: Path) -> PrivateEnvironment | None:
    """The environment in `folder`, or None if it isn't whole."""
    try:
        record = json.loads((folder / _COMPLETE_NAME).read_bytes())
        site_packages = Path(record["site_packages"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return PrivateEnvironment(folder, site_packages) if site_packages.is_dir() else None


def _check_version(sources: PluginSources, version: str) -> None:
    if _VERSION.fullmatch(version) is None:
        raise InvalidArgumentError(
            f"--framework-version: {version!r} is no version; it takes one exactly, e.g. 2.13.0"
        )
    minimum = sources.minimum_version
    if minimum is not None and release_of(version) < release_of(minimum):
        reason = f" ({sources.minimum_reason})" if sources.minimum_reason else ""
        hint = "; --from-prefix takes one that was built otherwise" if sources.prefix_layout else ""
        raise BackendNotFoundError(
            f"{sources.framework} {version} is too old for the plug-in for platform "
            f"'{sources.platform}': it needs {minimum} or newer{reason}{hint}"
        )


def _pip(folder: Path, has_pip: bool, requirement: str) -> list[str]:
    python = str(folder / "bin" / "python")
    options = ["--disable-pip-version-check", "--no-input", "--progress-bar=off", requirement]
    if has_pip:  # ours, so that settings of this environment count too
        return [sys.executable, "-m", "pip", "--python", python, "install", *options]
    return [python, "-m", "pip", "install", *options]


def _run(what: str, command: list[str], log_path: Path, report: Report) -> None:
    started = time.monotonic()
    report(f"{what} …")
    with log_path.open("ab") as log:
        log.write(f"$ {' '.join(command)}\n".encode())
        log.flush()
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
        )
        try:
            while True:
                try:
                    status = process.wait(_HEARTBEAT_SECONDS)
                    break
                except subprocess.TimeoutExpired:
                    seconds = time.monotonic() - started
                    report(f"{what} … {seconds:.0f} s: {_last_lines(log_path, 1)}")
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait()
    if status != 0:
        raise BackendInstallError(
            f"{what} failed (exit code {status}); whole log: {log_path}; it ends:\n"
            + _last_lines(log_path, _LOG_LINES)
        )


def _last_lines(path: Path, count: int) -> str:
    lines = [line for line in path.read_text(errors="replace").splitlines() if line.strip()]
    return "\n".join(lines[-count:])


def _site_packages(folder: Path) -> Path:
    return Path(sysconfig.get_path("purelib", "venv", {"base": str(folder)}))
