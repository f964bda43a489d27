"""A stand-in for a model that doesn't exist yet."""

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from neuropod.problem_api import ProblemAPI


def create_random_neuropod(
    neuropod_path: str | os.PathLike[str],
    problem_api: "ProblemAPI | str | os.PathLike[str] | None" = None,
    *,
    model_name: str = "random",
    seed: int | None = None,
    **arguments: Any,
) -> None:
    """Packages a model that returns random outputs, so that an application can be written before the
    real model exists. It needs no framework, and any language's Neuropod runs it.

    Outputs obey their specs. A symbol has the value that the inputs gave it, else one from 1 to 8 for
    the whole call; any size is from 1 to 8. Floats are from 0 to 1, integers from 0 to 99, strings a few
    letters.

    Args:
        neuropod_path: file or folder to write.
        problem_api: a `neuropod.ProblemAPI` or the path of its file; or `input_spec` and `output_spec`.
        model_name: the model's name.
        seed: the same one gives the same sequence of outputs each time the package is loaded; None
            another one each time.
        arguments: those that every packager takes (docs/pyguide.md), such as `overwrite`.

    Raises what every packager raises: InvalidArgumentError for arguments that can't be used,
    FileExistsError, PackageWriteError.
    """
    from neuropod.backends.echo.packager import package_random

    if problem_api is not None:
        arguments["problem_api"] = problem_api
    package_random(neuropod_path=neuropod_path, model_name=model_name, seed=seed, **arguments)
