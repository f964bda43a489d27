"""`neuropod run`: one call of a packaged model."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neuropod.cli.argument_types import positive
from neuropod.cli.exit_codes import ExitCode, UsageError
from neuropod.cli.loading import add_loading_arguments, loading_options
from neuropod.cli.output import print_json, print_table, print_text
from neuropod.cli.package_access import reading_package
from neuropod.cli.writable import check_target, written_whole

if TYPE_CHECKING:
    from argparse import _SubParsersAction

    from neuropod.executor import Neuropod

_SHOWN_ITEMS = 40


def add_parser(
    commands: "_SubParsersAction[argparse.ArgumentParser]", common: argparse.ArgumentParser
) -> None:
    parser = commands.add_parser(
        "run",
        parents=[common],
        help="run a package once on inputs from files",
        description="Loads a package and runs it once. Inputs: .npy, .npz, .json, .png, .jpg.",
    )
    parser.add_argument("package", metavar="PACKAGE", help="file or folder")
    parser.add_argument(
        "-i",
        "--input",
        action="append",
        default=[],
        metavar="[NAME=]FILE",
        help="an input; or, without a name, a .npz or .json that holds several by name",
    )
    parser.add_argument("-o", "--output", type=Path, metavar="FILE.npz", help="save the outputs")
    parser.add_argument(
        "-r", "--request", action="append", metavar="NAME", help="only this output; may be repeated"
    )
    parser.add_argument(
        "--resize",
        action="store_true",
        help="scale pictures to the size that the model expects, and convert their channels",
    )
    add_loading_arguments(parser)
    parser.add_argument("--threads", type=positive, metavar="N", help="threads of the framework")
    parser.set_defaults(command=_run)


def _run(args: argparse.Namespace) -> int:
    from neuropod import load_neuropod
    from neuropod.cli.inputs import read_inputs

    _check_output_path(args.output)
    options = loading_options(args, args.threads)
    with reading_package():
        model = load_neuropod(args.package, load_model_at_construction=False, **options)
    with model:
        inputs = read_inputs(args.input, model.inputs, resize=args.resize)
        with reading_package():
            model.load_model()
        outputs = model.infer(inputs, args.request)
        if args.output is not None:
            _save(outputs, args.output)
        _show(model, outputs, args)
    return ExitCode.DONE


def _check_output_path(path: Path | None) -> None:
    if path is None:
        return
    if path.suffix != ".npz":
        raise UsageError(f"-o {path}: outputs are saved as .npz")
    check_target("-o", path)


def _save(outputs: dict[str, Any], path: Path) -> None:
    from neuropod.packaging.arrays import write_npz

    with written_whole("-o", path) as temporary:
        write_npz(temporary, outputs)


def _show(model: "Neuropod", outputs: dict[str, Any], args: argparse.Namespace) -> None:
    import numpy as np

    if args.json:
        shown = {
            name: {
                "dtype": _dtype_name(model, name),
                "shape": list(array.shape),
                **({} if args.output else {"data": _as_lists(array)}),
            }
            for name, array in outputs.items()
        }
        saved = {"saved": str(args.output)} if args.output else {}
        print_json({"outputs": shown, **saved})
        return
    rows = []
    for name, array in outputs.items():
        text = np.array2string(
            np.asarray(array), threshold=_SHOWN_ITEMS, edgeitems=3, max_line_width=80
        )
        rows.append((name, _dtype_name(model, name), str(array.shape), text))
    columns = ("name", "dtype", "shape", "values")
    print_table(
        "outputs",
        columns[:3] if args.output else columns,
        [row[:3] if args.output else row for row in rows],
    )
    if args.output:
        print_text(f"saved: {args.output}")


def _dtype_name(model: "Neuropod", name: str) -> str:
    return next((str(s["dtype"]) for s in model.outputs if s["name"] == name), "")


def _as_lists(array: Any) -> Any:
    """Nested lists of Python numbers and strings; types of ml_dtypes come as floats."""
    return array.astype("float32").tolist() if array.dtype.kind == "V" else array.tolist()
