"""Neuropod where ml_dtypes isn't installed: it is an extra, needed for bfloat16 alone."""

import subprocess
import sys
from pathlib import Path

from echo_packages import write_addition, write_identity


def run_without_ml_dtypes(code: str) -> subprocess.CompletedProcess[str]:
    """Runs code in a process that can't import ml_dtypes."""
    hide = "import sys\nsys.modules['ml_dtypes'] = None\n"
    return subprocess.run(
        [sys.executable, "-c", hide + code], capture_output=True, text=True, check=False
    )


def test_other_dtypes_need_no_ml_dtypes(tmp_path: Path) -> None:
    package = write_addition(tmp_path / "addition")
    result = run_without_ml_dtypes(f"""
import numpy as np
from neuropod import load_neuropod
with load_neuropod({str(package)!r}) as model:
    x = np.ones(2, np.float32)
    print(model.infer({{"x": x, "y": x}})["out"].tolist())
""")
    assert result.returncode == 0, result.stderr
    assert result.stdout == "[2.0, 2.0]\n"


def test_an_array_of_an_unknown_dtype_is_refused_as_ever(tmp_path: Path) -> None:
    package = write_identity(tmp_path / "identity", "bfloat16", (2,))
    result = run_without_ml_dtypes(f"""
import numpy as np
from neuropod import load_neuropod
model = load_neuropod({str(package)!r})
model.infer({{"x": np.ones(2, np.float32)}})
""")
    assert result.returncode != 0
    assert "pass it with .astype(ml_dtypes.bfloat16)" in result.stderr


def test_bfloat16_names_the_extra() -> None:
    for call in (
        "from neuropod.packaging.dtypes import numpy_dtype; numpy_dtype('bfloat16')",
        "from neuropod import neuropod_native as n; n.deserialize(BYTES)",
    ):
        result = run_without_ml_dtypes(f"BYTES = {serialized_bfloat16()!r}\n{call}")
        assert result.returncode != 0
        last = result.stderr.strip().splitlines()[-1]
        assert "LoadFailedError" in last
        assert "bfloat16 arrays take ml_dtypes" in last
        assert "`pip install 'neuropod[bfloat16]'` adds it" in last


def serialized_bfloat16() -> bytes:
    import ml_dtypes
    import numpy as np

    from neuropod import neuropod_native

    return neuropod_native.serialize(np.ones(2, ml_dtypes.bfloat16))
