"""Packages models of the matrix framework."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from neuropod.errors import InvalidArgumentError
from neuropod.packaging import PackageDraft, packager

__all__ = ["create_matrix_neuropod"]


@packager(platform="matrix")
def create_matrix_neuropod(
    draft: PackageDraft,
    *,
    outputs: Mapping[str, Mapping[str, ArrayLike]],
    nonnegative: Sequence[str] = (),
) -> None:
    """Packages a sum of matrix × input for each output.

    outputs: output name to input name to matrix, (rows, columns) float32; a single number scales an
        input of any shape.
    nonnegative: names of inputs whose first element must not be negative when the model runs.
    """
    lines = [f"nonnegative {name}" for name in nonnegative]
    for output, terms in outputs.items():
        lines.append(f"output {output}")
        for name, values in terms.items():
            matrix = np.atleast_2d(np.asarray(values, dtype=np.float32))
            if matrix.ndim != 2 or matrix.size == 0:
                raise InvalidArgumentError(
                    f"outputs[{output!r}][{name!r}] must be a number or a matrix, not of shape "
                    f"{matrix.shape}"
                )
            lines.append(f"term {name} {matrix.shape[0]} {matrix.shape[1]}")
            lines.extend(" ".join(repr(float(value)) for value in row) for row in matrix)
    (draft.data_folder / "model.txt").write_text("\n".join(lines) + "\n", encoding="ascii")
