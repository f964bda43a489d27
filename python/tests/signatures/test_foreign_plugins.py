"""Plug-ins that uber/neuropod installed lie under the same NEUROPOD_BASE_DIR."""

import os
import subprocess
import sys


def test_they_are_ignored_with_a_debug_line(packages, tmp_path):
    plugin = tmp_path / "base" / "0.3.0rc7" / "backends" / "torchscript_1.4.0"
    plugin.mkdir(parents=True)
    (plugin / "libneuropod_torchscript_backend.so").write_bytes(b"would crash if it was opened")
    environment = {
        **os.environ,
        "NEUROPOD_BASE_DIR": str(tmp_path / "base"),
        "NEUROPOD_LOG_LEVEL": "DEBUG",
    }
    code = f"import neuropod; neuropod.load_neuropod({str(packages / 'zip')!r}).close()"
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert f"'{plugin}' is ignored" in done.stderr
    listing = subprocess.run(
        [sys.executable, "-m", "neuropod", "backends", "list", "--json"],
        env={**environment, "NEUROPOD_LOG_LEVEL": "INFO"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "torchscript_1.4.0" not in listing.stdout + listing.stderr
