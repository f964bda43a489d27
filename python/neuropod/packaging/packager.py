"""The decorator that makes a packager out of a function that writes a framework's files."""

import functools
import inspect
import os
import shutil
import warnings
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Final

from neuropod.errors import BackendNotFoundError, InvalidArgumentError, NeuropodError
from neuropod.packaging.archive import write_archive
from neuropod.packaging.arrays import Array, as_arrays
from neuropod.packaging.atomic_write import check_target, publish, staging_folder, sync_file
from neuropod.packaging.config import build_config, write_config
from neuropod.packaging.draft import PackageDraft, copy_custom_ops, custom_op_names
from neuropod.packaging.errors import PackageWriteError, UnknownArgumentError
from neuropod.packaging.manifest import write_manifest
from neuropod.packaging.nearest_name import did_you_mean
from neuropod.packaging.self_test import run_self_test
from neuropod.packaging.test_data import write_test_data
from neuropod.packaging.version_range import check_version_range
from neuropod.problem_api import ProblemAPI, as_problem_api
from neuropod.signing import check_signing_key, sign_package

_COMPRESSIONS: Final = (
    zipfile.ZIP_STORED,
    zipfile.ZIP_DEFLATED,
)

COMMON_ARGUMENTS_DOC: Final = """
    Every packager takes these, by keyword:

    neuropod_path: file or folder to write. Nothing is there until the package is whole and tested.
    model_name: the model's name.
    input_spec, output_spec: the problem API: lists of dicts with `name`, `dtype` (a numpy dtype or
        "string") and `shape`: a tuple of ints, symbols (the same size everywhere in a call; a first
        symbol that all tensors share is the batch) and None (any size). An input may have
        `"optional": True`.
    problem_api: a `neuropod.ProblemAPI`, or the path of its file, instead of the two specs.
    platform_version_semver: versions of the framework that can run it, as npm writes ranges.
    custom_ops: paths of shared libraries with custom operators; they go into the package.
    input_tensor_device: input name to "CPU" or "GPU"; default_input_tensor_device for the others.
    package_as_zip: a zip file (True) or a folder. zip_compression: zipfile.ZIP_DEFLATED or
        zipfile.ZIP_STORED.
    test_input_data: input name to array. Before the package appears at neuropod_path it is loaded in a
        fresh process, and run on these if given.
    test_expected_out: output name to array, compared with what that run returned: numbers as
        numpy.allclose does, NaN equal to NaN, strings exactly. Needs test_input_data.
    persist_test_data: keep the test data in the package.
    neuropod_load_args: arguments for `load_neuropod` in that run.
    overwrite: replace a package that is at neuropod_path.
    sign_with: PEM file of the private key (Ed25519) to sign the package with.
    stateful: the model keeps state between calls.
    format_version: 1 writes the format's version into config.json too. It always stands in
        manifest.json, and in config.json where the configuration needs it.
    version, description, author, license, created: strings for people.

    Raises InvalidArgumentError (a ValueError) for arguments that can't be used, FileExistsError,
    PackageWriteError (an OSError) for a full disk or a read-only folder, SelfTestError (a ValueError)
    if the outputs differ, and what loading and running raise. On failure nothing is left behind.
"""


@dataclass(kw_only=True)
class CommonArguments:
    """What every packager takes; COMMON_ARGUMENTS_DOC says what each means."""

    neuropod_path: str | os.PathLike[str]
    model_name: str
    input_spec: Sequence[Mapping[str, Any]] | None = None
    output_spec: Sequence[Mapping[str, Any]] | None = None
    problem_api: ProblemAPI | str | os.PathLike[str] | None = None
    platform_version_semver: str = "*"
    custom_ops: Sequence[str | os.PathLike[str]] = ()
    input_tensor_device: Mapping[str, str] | None = None
    default_input_tensor_device: str = "GPU"
    package_as_zip: bool = True
    zip_compression: int = zipfile.ZIP_DEFLATED
    test_input_data: Mapping[str, Any] | None = None
    test_expected_out: Mapping[str, Any] | None = None
    persist_test_data: bool = True
    neuropod_load_args: Mapping[str, Any] = field(default_factory=dict)
    overwrite: bool = False
    sign_with: str | os.PathLike[str] | None = None
    stateful: bool = False
    format_version: int | None = None
    version: str | None = None
    description: str | None = None
    author: str | None = None
    license: str | None = None
    created: str | None = None


_COMMON_NAMES: Final = tuple(f.name for f in fields(CommonArguments))
_REQUIRED_NAMES: Final = ("neuropod_path", "model_name")
_SPEC_NAMES: Final = ("input_spec", "output_spec")


def packager(platform: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Makes `write(draft, **own_arguments)` a packager for packages of `platform`.

    The result takes own_arguments and everything in CommonArguments, all by keyword. It checks them
    before `write` runs, refuses unknown ones, and does everything that isn't the framework's: config,
    custom operators, test data, manifest, zip, self-test, atomic write.
    """

    def decorate(write: Callable[..., None]) -> Callable[..., None]:
        own = list(inspect.signature(write).parameters.values())[1:]
        own_names = [parameter.name for parameter in own]
        known = (*own_names, *_COMMON_NAMES)

        @functools.wraps(write)
        def create(*args: Any, **kwargs: Any) -> None:
            if args:
                raise UnknownArgumentError(
                    f"{write.__name__} takes keyword arguments only, such as neuropod_path=…"
                )
            _check_names(write.__name__, kwargs, known, own)
            common = {k: v for k, v in kwargs.items() if k in _COMMON_NAMES}
            arguments = {k: v for k, v in kwargs.items() if k in own_names}
            _package(platform, CommonArguments(**common), functools.partial(write, **arguments))

        signature = _signature(own)
        create.__signature__ = signature  # type: ignore[attr-defined]
        create.__doc__ = (inspect.cleandoc(write.__doc__ or "")) + "\n" + COMMON_ARGUMENTS_DOC
        create.neuropod_default_args = {  # type: ignore[attr-defined]
            name: parameter.default
            for name, parameter in signature.parameters.items()
            if parameter.default is not inspect.Parameter.empty
        }
        return create

    return decorate


def _signature(own: list[inspect.Parameter]) -> inspect.Signature:
    common = inspect.signature(CommonArguments).parameters.values()
    merged = {p.name: p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in (*common, *own)}
    if "neuropod_load_args" in merged:
        merged["neuropod_load_args"] = merged["neuropod_load_args"].replace(default={})
    return inspect.Signature(list(merged.values()), return_annotation=None)


def _check_names(
    function: str, given: Mapping[str, Any], known: Sequence[str], own: list[inspect.Parameter]
) -> None:
    for name in given:
        if name not in known:
            raise UnknownArgumentError(
                f"{function} has no argument {name!r}{did_you_mean(name, known)}"
            )
    required = [p.name for p in own if p.default is inspect.Parameter.empty]
    for name in (*_REQUIRED_NAMES, *required):
        if name not in given:
            raise UnknownArgumentError(f"{function} needs the argument {name!r}")
    if given.get("problem_api") is None:
        for name in _SPEC_NAMES:
            if name not in given:
                raise UnknownArgumentError(
                    f"{function} needs the argument {name!r}, or problem_api instead of both specs"
                )
        return
    for name in _SPEC_NAMES:
        if given.get(name) is not None:
            raise InvalidArgumentError(
                f"{function} got problem_api and {name}; problem_api holds both specs, so give it alone"
            )


def _specs(args: CommonArguments) -> tuple[Any, Any]:
    if args.problem_api is None:
        return args.input_spec, args.output_spec
    api = as_problem_api(args.problem_api)
    return api.inputs, api.outputs


def _package(platform: str, args: CommonArguments, write: Callable[[PackageDraft], None]) -> None:
    ops = [Path(path) for path in args.custom_ops or ()]
    config = _checked_config(platform, args, ops)
    inputs, expected = _checked_test_data(args, config)
    target = _absolute(args.neuropod_path)
    check_target(target, args.overwrite)
    if args.sign_with is not None:
        check_signing_key(args.sign_with)
    try:
        with staging_folder(target) as staging:
            draft = PackageDraft(staging / "package", config)
            draft.folder.mkdir()
            copy_custom_ops(draft, ops)
            draft.data_folder.mkdir()
            write_config(draft.folder, config)
            write(draft)
            if inputs is not None and args.persist_test_data:
                write_test_data(draft.folder, inputs, expected)
            write_manifest(draft.folder)
            if args.sign_with is not None:
                sign_package(draft.folder, args.sign_with)
            package = _finished(draft, staging, args)
            _self_test(package, target, inputs, expected, args)
            publish(package, target, staging, args.overwrite)
    except NeuropodError:
        raise
    except OSError as error:
        reason = error.strerror or str(error)
        raise PackageWriteError(
            f"packaging model {args.model_name!r} to {target} failed: {reason}"
            f"{_where(error, target)}; nothing was left there",
            error.errno,
        ) from error


def _checked_config(platform: str, args: CommonArguments, ops: list[Path]) -> dict[str, Any]:
    check_version_range(args.platform_version_semver)
    if args.zip_compression not in _COMPRESSIONS:
        raise InvalidArgumentError(
            f"zip_compression must be zipfile.ZIP_DEFLATED or zipfile.ZIP_STORED, "
            f"not {args.zip_compression!r}: readers know no other"
        )
    for path in ops:
        if not path.is_file():
            raise InvalidArgumentError(f"custom_ops: {path} is no file")
    input_spec, output_spec = _specs(args)
    return build_config(
        model_name=args.model_name,
        platform=platform,
        input_spec=input_spec,
        output_spec=output_spec,
        platform_version_semver=args.platform_version_semver,
        custom_ops=custom_op_names(ops),
        input_tensor_device=args.input_tensor_device,
        default_input_tensor_device=args.default_input_tensor_device,
        stateful=args.stateful,
        format_version=args.format_version,
        version=args.version,
        description=args.description,
        author=args.author,
        license=args.license,
        created=args.created,
    )


def _checked_test_data(
    args: CommonArguments, config: Mapping[str, Any]
) -> tuple[dict[str, Array] | None, dict[str, Array] | None]:
    if args.test_input_data is None:
        if args.test_expected_out is not None:
            raise InvalidArgumentError(
                "test_expected_out needs test_input_data: without it nothing can be compared"
            )
        return None, None
    inputs = as_arrays(args.test_input_data, config["input_spec"], "test_input_data")
    if args.test_expected_out is None:
        return inputs, None
    return inputs, as_arrays(args.test_expected_out, config["output_spec"], "test_expected_out")


def _absolute(path: str | os.PathLike[str]) -> Path:
    if not os.fspath(path):
        raise InvalidArgumentError("neuropod_path is empty")
    return Path.cwd() / path


def _finished(draft: PackageDraft, staging: Path, args: CommonArguments) -> Path:
    if not args.package_as_zip:
        return draft.folder
    archive = staging / "package.neuropod"
    write_archive(draft.folder, archive, args.zip_compression)
    shutil.rmtree(draft.folder)
    sync_file(archive)
    return archive


def _self_test(
    package: Path,
    target: Path,
    inputs: Mapping[str, Array] | None,
    expected: Mapping[str, Array] | None,
    args: CommonArguments,
) -> None:
    try:
        run_self_test(package, inputs, expected, args.neuropod_load_args or {})
    except NeuropodError as error:
        message = error.message.replace(str(package), str(target))
        if inputs is None and isinstance(error, BackendNotFoundError):
            warnings.warn(
                f"model {args.model_name!r} was packaged without being loaded: {message}",
                stacklevel=5,
            )
            return
        failed = type(error)(
            f"package of model {args.model_name!r} failed its self-test: {message}"
        )
        for note in getattr(error, "__notes__", []):
            failed.add_note(note)
        raise failed from error.__cause__


def _where(error: OSError, target: Path) -> str:
    """The file the error is about, unless it's one of the draft's own."""
    name = error.filename
    return "" if name is None or str(name).startswith(str(target.parent)) else f" ({name})"
