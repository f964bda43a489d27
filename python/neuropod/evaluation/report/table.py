"""Results as tables of text: a title, the columns, the rows."""

from collections.abc import Sequence
from dataclasses import dataclass

from neuropod.evaluation.comparison import ComparisonResult
from neuropod.evaluation.gate import GateResult
from neuropod.evaluation.parity import OutputParity
from neuropod.evaluation.report import units
from neuropod.evaluation.resources import Resources
from neuropod.evaluation.result import EvaluationResult, MetricInfo, MetricValue, PackageResult

COST_COLUMNS = ("p50", "p90", "p99", "throughput", "CPU", "peak memory", "load")


@dataclass(frozen=True)
class Table:
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


def evaluation_tables(result: EvaluationResult) -> list[Table]:
    """Metrics, ranked; what the packages cost; the gate."""
    ranked = result.ranked()
    tables = []
    if result.metrics:
        rows = [
            (
                "failed" if package.error else str(rank),
                package.name,
                package.platform or "",
                *(
                    metric_text(package.metrics[info.label]) if not package.error else ""
                    for info in result.metrics
                ),
            )
            for rank, package in enumerate(ranked, 1)
        ]
        interval = ", 95 % bootstrap interval" if result.resamples else ""
        tables.append(
            Table(
                f"metrics: {_rows(result.rows)} of {result.data}{interval}",
                ("rank", "package", "platform", *(heading(info) for info in result.metrics)),
                rows,
            )
        )
    cost = [cost_row(package) for package in ranked if package.resources is not None]
    if cost:
        batch = any(package.batch_symbol for package in ranked)
        size = f"{result.batch_size} rows" if batch else "1 row"
        tables.append(Table(f"cost: calls of {size}", ("package", *COST_COLUMNS), cost))
    if result.gate is not None and result.gate.drops:
        tables.append(gate_table(result.gate))
    return tables


def gate_table(gate: GateResult) -> Table:
    """Every package against the baseline, metric by metric."""
    rows = [
        (
            drop.package,
            drop.metric,
            "ok" if drop.passed else "FAILED",
            units.number(drop.baseline),
            units.number(drop.value),
            units.number(drop.drop),
            "" if drop.interval is None else "[{}, {}]".format(*map(units.number, drop.interval)),
            f"{drop.allowed:g}",
        )
        for drop in gate.drops
    ]
    return Table(f"gate: against {gate.baseline}", GATE_COLUMNS, rows)


GATE_COLUMNS = (
    "package",
    "metric",
    "verdict",
    "baseline",
    "value",
    "worse by",
    "95 % interval",
    "allowed",
)


def comparison_tables(result: ComparisonResult) -> list[Table]:
    """Each output; the worst rows; what the packages cost."""
    tables = [
        Table(
            f"A {result.a.name} ({result.a.platform}) and B {result.b.name} ({result.b.platform}): "
            f"{_rows(result.rows)} of {result.data}",
            PARITY_COLUMNS,
            [parity_cells(output) for output in result.outputs],
        )
    ]
    worst = worst_rows(result)
    if worst:
        tables.append(Table("worst rows", ("output", "row", "index", "A", "B"), worst))
    cost = [
        (f"{letter} {package.name}", *cost_cells(package.resources))
        for letter, package in (("A", result.a), ("B", result.b))
    ]
    tables.append(Table("cost, taking turns", ("package", *COST_COLUMNS), cost))
    return tables


PARITY_COLUMNS = (
    "output",
    "dtype",
    "rows that disagree",
    "elements that agree",
    "max |A-B|",
    "mean |A-B|",
    "max relative",
    "same argmax",
    "NaN only A / only B / both",
)


def parity_cells(output: OutputParity) -> tuple[str, ...]:
    """One output for PARITY_COLUMNS."""
    rows = f"{output.disagreeing_rows} of {output.rows}"
    if output.other_shape_rows:
        rows += f" ({output.other_shape_rows} of another shape)"
    numbers = (
        ("", "", "")
        if output.is_text
        else (
            f"{output.max_difference:.3g}",
            f"{output.mean_difference:.3g}",
            f"{output.max_relative:.3g}",
        )
    )
    argmax = output.argmax_agreement
    nans = (output.nan_only_a, output.nan_only_b, output.nan_both)
    return (
        output.name,
        output.dtype,
        rows,
        units.percent(output.agreeing_share),
        *numbers,
        "" if argmax is None else units.percent(argmax),
        " / ".join(map(str, nans)) if any(nans) else "none",
    )


def worst_rows(result: ComparisonResult) -> list[tuple[str, ...]]:
    """Output, row, index, A and B."""
    return [
        (
            output.name,
            result.where[worst.row],
            "" if not worst.index else str(list(worst.index)),
            worst.a,
            worst.b,
        )
        for output in result.outputs
        for worst in output.worst
    ]


def cost_row(package: PackageResult) -> tuple[str, ...]:
    """One package of an evaluation, its name first."""
    return (package.name, *(cost_cells(package.resources) if package.resources else ()))


def cost_cells(resources: Resources) -> tuple[str, ...]:
    """One package for COST_COLUMNS."""
    latency = resources.latency
    return (
        *(units.seconds(latency.percentile(percent)) for percent in (50, 90, 99)),
        units.rate(latency.throughput),
        units.seconds(resources.cpu_seconds),
        units.memory(resources.peak_memory),
        units.seconds(resources.load_seconds),
    )


def metric_text(metric: MetricValue) -> str:
    """`0.9712 [0.9600, 0.9810]`."""
    text = units.number(metric.value)
    if metric.interval is not None:
        low, high = (units.number(bound) for bound in metric.interval)
        text += f" [{low}, {high}]"
    return text


def heading(info: MetricInfo) -> str:
    """The metric and which way is better."""
    return f"{info.label} {'↑' if info.higher_is_better else '↓'}"


def _rows(count: int) -> str:
    return f"{count:,} row{'s' if count != 1 else ''}"
