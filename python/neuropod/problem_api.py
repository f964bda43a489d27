"""The problem API: the tensors that every model of one problem takes and returns.

from neuropod import ProblemAPI

detection = ProblemAPI(
    inputs=[{"name": "image", "dtype": "uint8", "shape": (1200, 1920, 3)}],
    outputs=[{"name": "boxes", "dtype": "float32", "shape": ("num_detections", 4)}],
)
detection.to_file("detection.json")
assert detection.is_fulfilled_by(ProblemAPI.from_package("detector.neuropod"))
"""

import json
import os
import pathlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from neuropod.errors import InvalidArgumentError

if TYPE_CHECKING:
    from neuropod._native import ProblemApi, TensorSpec

Path = str | bytes | os.PathLike[str] | os.PathLike[bytes]
Spec = dict[str, Any]


@dataclass(frozen=True)
class ApiDifference:
    """One point in which two problem APIs differ."""

    side: str
    """`"input"` or `"output"`."""

    tensor: str
    text: str
    """One line that names side, tensor, and what is found instead of what."""

    breaking: bool
    """A program written for the old API may fail with the new one."""

    def __str__(self) -> str:
        return self.text


class ProblemAPI:
    """The tensors that every model of one problem takes and returns. Immutable.

    A spec is a dict of `name`, `dtype` (a numpy dtype, its name, or "string") and `shape`: a tuple of
    sizes, symbols (one value everywhere in a call) and None (any size). An input that may be left out
    has `"optional": True`.
    """

    def __init__(
        self, inputs: Iterable[Mapping[str, Any]] = (), outputs: Iterable[Mapping[str, Any]] = ()
    ) -> None:
        """Raises InvalidArgumentError that names the tensor and what is wrong with it."""
        from neuropod import _native
        from neuropod.packaging.specs import canonical_specs

        document = {
            "problem_api_version": 1,
            "input_spec": canonical_specs(inputs, "input_spec"),
            "output_spec": canonical_specs(outputs, "output_spec"),
        }
        self._native: ProblemApi = _native.parse_problem_api(json.dumps(document), "problem API")

    @classmethod
    def from_file(cls, path: Path) -> "ProblemAPI":
        """Reads a problem-API file (docs/formats/problem_api.md).

        Raises NotFoundError if there is none, InvalidArgumentError with `path:line:` and the key.
        """
        from neuropod import _native

        return cls._of(_native.read_problem_api(path))

    @classmethod
    def from_package(cls, path: Path) -> "ProblemAPI":
        """What a package promises. Reads its configuration only; needs no plug-in."""
        from neuropod import _native

        return cls._of(_native.read_package_problem_api(path))

    def to_file(self, path: Path) -> None:
        """Writes it as a problem-API file. The same API always gives the same bytes."""
        pathlib.Path(os.fsdecode(path)).write_bytes(str(self).encode())

    @property
    def inputs(self) -> list[Spec]:
        """Dicts of `name`, `dtype` and `shape` (a list of sizes, None and symbols), as a model's."""
        return [spec_dict(spec) for spec in self._native.inputs]

    @property
    def outputs(self) -> list[Spec]:
        return [spec_dict(spec) for spec in self._native.outputs]

    def differences(self, other: "ProblemAPI") -> list[ApiDifference]:
        """How `other` differs from this one: inputs first, then outputs.

        None is breaking exactly if `other` can replace this one under any program: it takes every call
        that this one takes, and returns only what this one might have returned. docs/problem_api.md has
        the rules as a table.
        """
        from neuropod import _native

        return [
            ApiDifference(difference.side, difference.tensor, difference.text, difference.breaking)
            for difference in _native.compare_problem_apis(self._native, other._native)
        ]

    def is_fulfilled_by(self, other: "ProblemAPI") -> bool:
        """Whether `other` can replace this one: no difference is breaking."""
        return not any(difference.breaking for difference in self.differences(other))

    @classmethod
    def _of(cls, native: "ProblemApi") -> "ProblemAPI":
        api = cls.__new__(cls)
        api._native = native
        return api

    def __str__(self) -> str:
        """The content of its file."""
        from neuropod import _native

        return _native.problem_api_text(self._native)

    def __repr__(self) -> str:
        from neuropod.model_repr import plain

        inputs = ", ".join(f"{spec.name} {spec}" for spec in self._native.inputs)
        outputs = ", ".join(f"{spec.name} {spec}" for spec in self._native.outputs)
        return plain(f"<ProblemAPI {inputs or 'nothing'} -> {outputs or 'nothing'}>")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ProblemAPI):
            return NotImplemented
        return str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    def __reduce__(self) -> Any:
        return ProblemAPI, (self.inputs, self.outputs)


def as_problem_api(api: "ProblemAPI | Path") -> ProblemAPI:
    """`api` itself, or what the file at that path holds."""
    if isinstance(api, ProblemAPI):
        return api
    if isinstance(api, (str, bytes, os.PathLike)):
        return ProblemAPI.from_file(api)
    raise InvalidArgumentError(
        f"problem_api must be a neuropod.ProblemAPI or the path of its file, not {api!r:.80}"
    )


def spec_dict(spec: "TensorSpec") -> Spec:
    """A spec as `config.json` has it."""
    shape = [dim.symbol or (dim.value if dim.value >= 0 else None) for dim in spec.dims]
    result: Spec = {"name": spec.name, "dtype": spec.type.name, "shape": shape}
    if spec.optional:
        result["optional"] = True
    return result


def shape_text(shape: Sequence[Any]) -> str:
    """`(batch, 3, any)`; `()` is a single value."""
    words = ["any" if size is None else str(size) for size in shape]
    return f"({words[0]},)" if len(words) == 1 else f"({', '.join(words)})"
