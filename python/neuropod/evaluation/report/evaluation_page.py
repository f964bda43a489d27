"""The page of an evaluation."""

import math

from neuropod.evaluation.report import units
from neuropod.evaluation.report.page import card, cards, notes, page, plot, section, table
from neuropod.evaluation.report.plots import Bar, Dot, bars, intervals
from neuropod.evaluation.report.table import (
    COST_COLUMNS,
    Table,
    cost_row,
    evaluation_tables,
    gate_table,
    heading,
    metric_text,
)
from neuropod.evaluation.result import EvaluationResult, MetricInfo, PackageResult


def evaluation_page(result: EvaluationResult) -> str:
    """The whole page as HTML text."""
    ran = [package for package in result.ranked() if package.resources is not None]
    sections = [_summary(result, ran)]
    failed = [f"{p.name}: {p.error}" for p in result.packages if p.error]
    if failed:
        sections.append(section("Packages that failed", notes(failed, "bad")))
    if result.gate is not None:
        sections.append(_gate(result))
    tables = evaluation_tables(result)
    if result.metrics and ran:
        pictures = [plot(heading(info), _metric(info, ran)) for info in result.metrics]
        sections.append(
            section("Metrics", table(tables[0], 3), *pictures, _notes(ran), note=_interval(result))
        )
    if ran:
        costs = Table("", ("package", *COST_COLUMNS), [cost_row(package) for package in ran])
        sections.append(_cost(ran, table(costs)))
    lead = (
        f"{len(result.packages)} package{'s' if len(result.packages) != 1 else ''} on "
        f"{result.rows:,} rows of {result.data}, in calls of {result.batch_size} rows where the "
        "problem API has a batch symbol."
    )
    return page("Evaluation", lead, sections)


def _summary(result: EvaluationResult, ran: list[PackageResult]) -> str:
    given = []
    if result.metrics and ran:
        first = result.metrics[0]
        best = ran[0].metrics[first.label]
        given.append(card(f"best {first.label}", units.number(best.value), ran[0].name))
    if ran:
        fastest = max(ran, key=lambda package: _throughput(package))
        given.append(card("highest throughput", units.rate(_throughput(fastest)), fastest.name))
    if result.gate is not None:
        passed = result.gate.passed
        worse = sum(not drop.passed for drop in result.gate.drops)
        detail = f"{worse} metric{'s' if worse != 1 else ''} dropped too far"
        if not worse:
            detail = "no metric dropped too far" if passed else "a package failed"
        given.append(
            card("gate", "passed" if passed else "failed", detail, "good" if passed else "bad")
        )
    return cards(*given)


def _gate(result: EvaluationResult) -> str:
    gate = result.gate
    if gate is None:
        return ""
    lost = [drop.text for drop in gate.drops if not drop.passed]
    return section(f"Against {gate.baseline}", notes(lost, "bad"), table(gate_table(gate), 3))


def _metric(info: MetricInfo, ran: list[PackageResult]) -> str:
    dots = []
    for package in ran:
        metric = package.metrics[info.label]
        low, high = metric.interval or (math.nan, math.nan)
        dots.append(Dot(package.name, metric.value, low, high, metric_text(metric)))
    return f'<div class="ranked">{intervals(heading(info), dots)}</div>'


def _notes(ran: list[PackageResult]) -> str:
    return notes([f"{package.name}: {note}" for package in ran for note in package.notes], "bad")


def _interval(result: EvaluationResult) -> str:
    better = "↑ higher is better, ↓ lower is better."
    if not result.resamples:
        return better
    return (
        f"{better} Lines are 95 % bootstrap intervals ({result.resamples:,} resamples, seed "
        f"{result.seed}): how far the figure would move with other data of the same kind."
    )


def _cost(ran: list[PackageResult], costs: str) -> str:
    latency, throughput, memory = [], [], []
    for package in ran:
        resources = package.resources
        if resources is None:
            continue
        middle = resources.latency.percentile(50)
        latency.append(Bar(package.name, middle, units.seconds(middle)))
        rate = resources.latency.throughput
        throughput.append(Bar(package.name, rate, units.rate(rate)))
        peak = resources.peak_memory
        memory.append(Bar(package.name, peak, units.memory(peak)))
    return section(
        "Cost",
        costs,
        *(
            plot(title, f'<div class="ranked">{bars(title, given)}</div>')
            for title, given in (
                ("Median latency of a call", latency),
                ("Rows a second, one caller", throughput),
                ("Peak memory of the process", memory),
            )
        ),
        note="Each package ran alone in a process of its own. CPU is of one pass over the data; memory "
        "includes the interpreter and the framework.",
    )


def _throughput(package: PackageResult) -> float:
    return 0.0 if package.resources is None else package.resources.latency.throughput
