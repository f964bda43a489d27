"""The page of a comparison."""

import numpy as np

from neuropod.evaluation.comparison import ComparisonResult
from neuropod.evaluation.parity import OutputParity
from neuropod.evaluation.report import units
from neuropod.evaluation.report.page import (
    card,
    cards,
    notes,
    page,
    plot,
    section,
    side_by_side,
    table,
)
from neuropod.evaluation.report.plots import histogram, scatter
from neuropod.evaluation.report.table import Table, comparison_tables, worst_rows
from neuropod.packaging.arrays import Array

_SHOWN_POINTS = 1000
_HALF_SIZE = (430.0, 404.0)


def comparison_page(result: ComparisonResult) -> str:
    """The whole page as HTML text."""
    tables = comparison_tables(result)
    sections = [
        _summary(result),
        section(
            "Outputs",
            table(tables[0], 2),
            notes(_nan_lines(result), "bad"),
            note=f"Floating numbers agree if |A - B| ≤ {result.tolerance.absolute:g} + "
            f"{result.tolerance.relative:g} · |A|, everything else if it's equal. NaN agrees with NaN "
            "only. A row disagrees if one of its elements does.",
        ),
        *(_pictures(output, result) for output in result.outputs if len(output.samples)),
    ]
    worst = worst_rows(result)
    if worst:
        columns = ("output", "row", "index", "A", "B")
        sections.append(section("Worst rows", table(Table("", columns, worst), 2)))
    sections.append(_speed(result, table(tables[-1])))
    lead = (
        f"A is {result.a.name} ({result.a.platform}), B is {result.b.name} ({result.b.platform}); "
        f"both answered the same {result.rows:,} rows of {result.data}."
    )
    return page(f"{result.a.name} and {result.b.name}", lead, sections)


def _summary(result: ComparisonResult) -> str:
    agrees = result.agrees
    disagreeing = max((output.disagreement for output in result.outputs), default=0.0)
    largest = max((o.max_difference for o in result.outputs if not o.is_text), default=0.0)
    ratio = result.speed_ratio
    faster = f"{ratio:.2f} × faster" if ratio >= 1 else f"{1 / ratio:.2f} × slower"
    if faster.startswith("1.00 "):
        faster = "as fast"
    return cards(
        card(
            "verdict",
            "they agree" if agrees else "they disagree",
            f"at most {units.percent(result.max_disagreement)} of rows may disagree",
            "good" if agrees else "bad",
        ),
        card("rows that disagree", units.percent(disagreeing), "in the output with most of them"),
        card("largest difference", f"{largest:.3g}", "of numbers that are finite in both"),
        card("B is", faster, "by the median latency of calls"),
    )


def _nan_lines(result: ComparisonResult) -> list[str]:
    return [
        f"{output.name}: {count} NaN in {which} only"
        for output in result.outputs
        for which, count in (("A", output.nan_only_a), ("B", output.nan_only_b))
        if count
    ]


def _pictures(output: OutputParity, result: ComparisonResult) -> str:
    pairs = output.samples[:_SHOWN_POINTS]
    names = (result.a.name, result.b.name)
    return section(
        f"Output {output.name}",
        side_by_side(
            plot("A against B", scatter(f"{output.name}: A against B", pairs, names), "square"),
            plot("How far they lie apart", _differences(output)),
        ),
        note=f"{len(output.samples):,} of {output.finite:,} pairs of numbers"
        + (", drawn at random." if len(output.samples) < output.finite else "."),
    )


def _differences(output: OutputParity) -> str:
    difference = abs(output.samples[:, 0] - output.samples[:, 1])
    if not difference.any():
        return "<p>All of them are equal.</p>"
    title = f"{output.name}: absolute differences"
    if "float" not in output.dtype:
        return histogram(title, [("", difference)], "|A - B|", size=_HALF_SIZE)
    smallest = float(difference[difference > 0].min())
    equal = smallest / 10
    exponents = np.log10(np.maximum(difference, equal))
    return histogram(
        title,
        [("", exponents)],
        f"|A - B|; equal numbers stand at {equal:.0e}" if (difference == 0).any() else "|A - B|",
        axis_text=lambda value: f"{10**value:.0e}",
        size=_HALF_SIZE,
    )


def _speed(result: ComparisonResult, costs: str) -> str:
    a, b = (_calls_shown(package.resources.latency.samples) for package in (result.a, result.b))
    picture = histogram(
        "latency of calls",
        [(f"A {result.a.name}", a), (f"B {result.b.name}", b)],
        "time of a call; the slowest hundredth isn't shown",
        axis_text=units.seconds,
    )
    return section(
        "Speed",
        costs,
        plot("Latency of calls", picture),
        note="The two took turns on the same calls, so that what disturbs the machine hits both.",
    )


def _calls_shown(samples: Array) -> Array:
    shown: Array = samples[samples <= np.percentile(samples, 99)]
    return shown
