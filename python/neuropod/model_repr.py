"""How a loaded model looks in a terminal and in a notebook."""

import html
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from neuropod.options import Path
from neuropod.problem_api import shape_text, spec_dict

if TYPE_CHECKING:
    from neuropod._native import BackendLoadSpec, Model

_SHOWN_SPECS: Final = 20
# A notebook's own style stripes tables, aligns cells to the right, and may be dark.
_TABLE: Final = "border-collapse:collapse;color:inherit;font-size:inherit;margin:0.3em 0"
_CELL: Final = "text-align:left;padding:0.1em 1em 0.1em 0"


@dataclass(frozen=True)
class ModelDescription:
    """What there is to say of a model, also after it was closed."""

    name: str
    path: str
    platform: str
    version_range: str
    """Of the framework, as the package asks for it."""

    overrides: "tuple[BackendLoadSpec, ...]"
    inputs: tuple[dict[str, Any], ...]
    outputs: tuple[dict[str, Any], ...]

    def framework(self) -> str:
        """Name and version of the framework whose plug-in serves it; empty if there is none.

        Looks for plug-ins and opens none.
        """
        from neuropod import _native

        search = _native.find_backends(self.platform, self.version_range, list(self.overrides))
        found = next((c.manifest for c in search.candidates if not c.rejected), None)
        return "" if found is None else f"{found.framework} {found.framework_version}"


def describe(
    model: "Model", path: Path, overrides: "Sequence[BackendLoadSpec]"
) -> ModelDescription:
    """Describes a model that was opened from `path`."""

    return ModelDescription(
        name=model.get_name(),
        path=os.fsdecode(path),
        platform=model.get_platform(),
        version_range=model.get_config()["platform_version_semver"],
        overrides=tuple(overrides),
        inputs=tuple(spec_dict(spec) for spec in model.get_inputs()),
        outputs=tuple(spec_dict(spec) for spec in model.get_outputs()),
    )


def as_text(description: ModelDescription, is_closed: bool) -> str:
    """Several lines: the model, then its specs in columns."""
    state = ", closed" if is_closed else ""
    title = (
        f"<Neuropod {plain(description.name)!r} ({_platform(description)}{state}) "
        f"from {plain(description.path)!r}"
    )
    rows = _rows(description)
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(5)]
    lines = [
        "  "
        + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    return "\n".join([title, *lines]) + ">"


def as_html(description: ModelDescription, is_closed: bool) -> str:
    """The same as a heading and a table; nothing in the model's names is taken for markup."""
    state = ", closed" if is_closed else ""
    heading = (
        f"<b>{_escaped(description.name)}</b> ({_escaped(_platform(description))}{state})<br>"
        f"<small>{_escaped(description.path)}</small>"
    )
    rows = "".join(
        '<tr style="background:none">'
        + f'<th style="{_CELL};font-weight:normal">{_escaped(row[0])}</th>'
        + "".join(f'<td style="{_CELL}">{_escaped(cell)}</td>' for cell in row[1:])
        + "</tr>"
        for row in _rows(description)
    )
    return f'<div>{heading}<table style="{_TABLE}">{rows}</table></div>'


def _platform(description: ModelDescription) -> str:
    platform, framework = plain(description.platform), plain(description.framework())
    if not framework or framework.split()[0] == platform:
        return framework or platform
    return f"{platform}, {framework}"


def _rows(description: ModelDescription) -> list[tuple[str, ...]]:
    """Side, name, dtype, shape, remark; the side stands in the first line of each."""
    rows: list[tuple[str, ...]] = []
    for side, specs in (("inputs", description.inputs), ("outputs", description.outputs)):
        shown = [
            (
                plain(spec["name"]),
                spec["dtype"],
                plain(shape_text(spec["shape"])),
                "optional" if spec.get("optional") else "",
            )
            for spec in specs[:_SHOWN_SPECS]
        ]
        if len(specs) > _SHOWN_SPECS:
            shown.append((f"… and {len(specs) - _SHOWN_SPECS} more", "", "", ""))
        rows += [
            (side if i == 0 else "", *row) for i, row in enumerate(shown or [("none", "", "", "")])
        ]
    return rows


def plain(text: str) -> str:
    """Control characters and lone surrogates as escapes: a package can't steer the terminal."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def _escaped(text: str) -> str:
    return html.escape(plain(text))
