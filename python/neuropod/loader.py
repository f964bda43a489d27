"""Loading models; run as a program, one inference over pickled dicts.

    python -m neuropod.loader --neuropod-path MODEL --input-pkl-path IN [--args-pkl-path OPTIONS]
                              [--output-pkl-path OUT]

IN holds a dict of inputs, OPTIONS a dict of `load_neuropod`'s options, OUT gets the dict of outputs. A
pickle is a program: only plain containers, numbers, strings and NumPy arrays are read. `neuropod run`
does the same over .npy, .npz, .json and images.
"""

import argparse
import pickle
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from neuropod.errors import InvalidArgumentError, NeuropodError
from neuropod.executor import Neuropod, load_neuropod

# The name that existing code knows.
NativeNeuropodExecutor = Neuropod

__all__ = ["NativeNeuropodExecutor", "Neuropod", "load_neuropod"]


def _read_dict(path: Path) -> dict[str, Any]:
    from neuropod.packaging.test_data import load_plain_pickle

    data = load_plain_pickle(path.read_bytes())
    if not isinstance(data, dict):
        raise InvalidArgumentError(f"'{path}' is expected to hold a dict, but holds {data!r:.60}")
    return data


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the program above. Returns its exit code: 0, or 1 after an error."""
    parser = argparse.ArgumentParser(
        prog="python -m neuropod.loader",
        description="Runs a model once over a pickled dict of inputs.",
    )
    parser.add_argument("--neuropod-path", type=Path, required=True, help="the package")
    parser.add_argument("--input-pkl-path", type=Path, required=True, help="pickled dict of inputs")
    parser.add_argument(
        "--args-pkl-path", type=Path, help="pickled dict of load_neuropod's options"
    )
    parser.add_argument("--output-pkl-path", type=Path, help="where to pickle the dict of outputs")
    chosen = parser.parse_args(arguments)
    try:
        options = _read_dict(chosen.args_pkl_path) if chosen.args_pkl_path else {}
        inputs = _read_dict(chosen.input_pkl_path)
        with load_neuropod(chosen.neuropod_path, **options) as model:
            outputs = model.infer(inputs)
        if chosen.output_pkl_path:
            chosen.output_pkl_path.write_bytes(pickle.dumps(outputs))
    except (NeuropodError, OSError) as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
