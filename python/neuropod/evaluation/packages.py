"""The packages of one evaluation: their names, and whether they solve the same problem."""

from collections.abc import Sequence
from pathlib import Path

from neuropod.evaluation.errors import EvaluationError
from neuropod.problem_api import ProblemAPI


def shared_problem_api(packages: Sequence[Path]) -> ProblemAPI:
    """The first package's problem API, which the others fulfil.

    Reads configurations only. Raises EvaluationError with every difference, or what reading raises.
    """
    reference = ProblemAPI.from_package(packages[0])
    for package in packages[1:]:
        breaking = [
            difference.text
            for difference in reference.differences(ProblemAPI.from_package(package))
            if difference.breaking
        ]
        if breaking:
            raise EvaluationError(
                f"{package} solves another problem than {packages[0]}: {'; '.join(breaking)}; "
                f"`neuropod api diff {packages[0]} {package}` shows both"
            )
    return reference


def display_names(packages: Sequence[Path]) -> list[str]:
    """File names where they differ, paths where they don't. EvaluationError for a package given twice."""
    resolved = [package.resolve() for package in packages]
    for index, package in enumerate(packages):
        if resolved[index] in resolved[:index]:
            raise EvaluationError(f"{package} is given twice")
    names = [package.name for package in packages]
    return names if len(set(names)) == len(names) else [str(package) for package in packages]
