"""Packages the models that the contract suite asks for, and writes what matrix models can't do.

python make_fixtures.py FOLDER
"""

import json
import sys
from pathlib import Path
from typing import Any

from neuropod.packagers import create_matrix_neuropod

NEW_MEMORY = "a product is a new vector"
NO_STATE = "matrices keep no state"

MODELS: dict[str, dict[str, Any]] = {
    "identity": {"outputs": {"y": {"x": 1}}},
    "addition": {"outputs": {"out": {"x": 1, "y": 1}}},
    "optional": {"outputs": {"y": {"x": 1, "bias": 1}}},
    "failing": {"outputs": {"y": {"x": 1}}, "nonnegative": ["x"]},
    "outputs": {"outputs": {"double": {"x": 2}, "negative": {"x": -1}}},
}

FIXTURES: dict[str, Any] = {
    "platform": "matrix",
    "model_file": "0/data/model.txt",
    "failing_message": "input 'x' must not be negative",
    "capabilities": {
        "dtypes": ["float32"],
        "max_rank": 6,
        "string_ranks": [],
        "zero_size": True,
        "string_nul": False,
        "zero_copy_in": False,
        "zero_copy_out": False,
        "device": False,
        "outputs_on_device": False,
        "corrupt_model_detected": True,
    },
    "reasons": {
        "dtypes": "matrices are float32",
        "string_ranks": "strings can't be multiplied",
        "string_nul": "strings can't be multiplied",
        "zero_copy_in": "inputs are only read, so it can't be seen",
        "zero_copy_out": NEW_MEMORY,
        "device": "runs on the CPU",
        "outputs_on_device": "runs on the CPU",
        "strings": "strings can't be multiplied",
        "stateful": NO_STATE,
        "transpose": "matrices apply to vectors",
        "alias": NEW_MEMORY,
        "inplace": NEW_MEMORY,
        "parameter": NEW_MEMORY,
    },
}


def spec(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "dtype": "float32", "shape": ("n",), **more}


def make_package(name: str, path: Path, *, as_zip: bool = False) -> None:
    model = MODELS[name]
    used = {name for terms in model["outputs"].values() for name in terms}
    optional = {"bias": {"optional": True}}
    create_matrix_neuropod(
        neuropod_path=path,
        model_name=f"contract_{name}",
        input_spec=[spec(i, **optional.get(i, {})) for i in ("x", "y", "bias") if i in used],
        output_spec=[spec(output) for output in model["outputs"]],
        package_as_zip=as_zip,
        format_version=1,
        **model,
    )


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True)
    for name in MODELS:
        make_package(name, folder / name)
    make_package("identity", folder / "identity.zip", as_zip=True)
    packages = {name: name for name in MODELS} | {"identity_zip": "identity.zip"}
    fixtures = FIXTURES | {"packages": packages}
    (folder / "fixtures.json").write_text(json.dumps(fixtures, indent=2))


if __name__ == "__main__":
    main()
