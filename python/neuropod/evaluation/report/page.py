"""The frame of the pages: one HTML document that loads nothing, in light and dark."""

import html
import string
from collections.abc import Sequence
from pathlib import Path

from neuropod.evaluation.report.table import Table

_TEMPLATE = Path(__file__).with_name("page_template.html")


def page(title: str, lead: str, sections: Sequence[str]) -> str:
    """The document. `title` and `lead` are text, `sections` HTML."""
    import neuropod

    return string.Template(_TEMPLATE.read_text(encoding="utf-8")).substitute(
        title=html.escape(title),
        lead=html.escape(lead),
        sections="\n".join(sections),
        version=html.escape(neuropod.__version__),
    )


def section(title: str, *parts: str, note: str = "") -> str:
    """A heading, a sentence and HTML."""
    text = f"<p>{html.escape(note)}</p>" if note else ""
    return f"<section><h2>{html.escape(title)}</h2>{text}{''.join(parts)}</section>"


def plot(title: str, drawing: str, css: str = "") -> str:
    """A picture in a frame, with its title."""
    return f'<figure class="plot {css}"><figcaption>{html.escape(title)}</figcaption>{drawing}</figure>'


def side_by_side(*figures: str) -> str:
    """Pictures beside each other where there is room."""
    return f'<div class="pair">{"".join(figures)}</div>'


def table(given: Table, text_columns: int = 1) -> str:
    """A table; its first columns are text, the others figures."""
    head = "".join(
        f'<th class="{"text" if i < text_columns else ""}">{html.escape(column)}</th>'
        for i, column in enumerate(given.columns)
    )
    rows = []
    for row in given.rows:
        cells = "".join(
            f'<td class="text">{html.escape(cell)}</td>' if i < text_columns else _figure(cell)
            for i, cell in enumerate(row)
        )
        rows.append(f"<tr>{cells}</tr>")
    return (
        f'<div class="table"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _figure(cell: str) -> str:
    """A cell with a figure, which stays whole; its interval may go to the next line."""
    text = html.escape(cell).replace(" ", "&nbsp;").replace("&nbsp;[", " [")
    return f"<td>{text}</td>"


def card(label: str, figure: str, detail: str = "", css: str = "") -> str:
    """One figure that matters."""
    return (
        f'<div class="card {css}"><span class="label">{html.escape(label)}</span>'
        f'<span class="figure">{html.escape(figure)}</span>'
        f'<span class="label">{html.escape(detail)}</span></div>'
    )


def cards(*given: str) -> str:
    return f'<div class="cards">{"".join(given)}</div>'


def notes(lines: Sequence[str], css: str = "") -> str:
    """Lines that a reader must not miss."""
    items = "".join(f"<li>{html.escape(line)}</li>" for line in lines)
    return f'<ul class="notes {css}">{items}</ul>' if lines else ""
