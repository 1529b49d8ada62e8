"""Results of an evaluation as lines for a terminal and as Markdown."""

from collections.abc import Sequence

from precise_rag.evaluation.measures.statistics import Comparison, Interval
from precise_rag.evaluation.runs.evaluate import AnswerRow
from precise_rag.evaluation.runs.measurer import Row

SIGNIFICANT = 0.05
"""p-value below which a difference is marked."""

_SHARES = ("recall", "precision", "iou", "useful")


def columns(rows: Sequence[Row]) -> list[str]:
    """Return the names of the quality measures to show, in order; [] without evidence."""
    means = rows[0].means
    recalls = [name for name in means if name.startswith("recall@")]
    ious = [name for name in means if name.startswith("iou@")][:1]
    others = ["useful@450", "Hits@1", "Hits@10", "MRR@10", "nDCG@10"]
    return [*recalls, *ious, *(name for name in others if name in means)]


def format_table(rows: Sequence[Row]) -> str:
    """Format the table of quality and the table of cost as aligned lines.

    A mean is followed by half the width of its 95 % interval. + or - marks a recall that differs from the
    baseline's (paired test, p < 0.05).
    """
    names = columns(rows)
    quality = [
        [row.name, *(cell(name, row.means[name], row.against_baseline.get(name)) for name in names)]
        for row in rows
    ]
    blocks = [[["pipeline", *names], *quality]] if names else []
    blocks.append([cost_columns(rows), *(cost_cells(row, rows) for row in rows)])
    return "\n\n".join(_aligned(block) for block in blocks)


def cost_columns(rows: Sequence[Row]) -> list[str]:
    """Return the header of the table of cost."""
    has_evidence, asks = "recall" in rows[0].means, any(row.means["llm calls"].mean for row in rows)
    return [
        "pipeline",
        *(["recall kept"] if has_evidence else []),
        "tokens kept",
        *(["recall/1k"] if has_evidence else []),
        "ms",
        "build s",
        "units",
        "memory MB",
        *(["llm calls", "llm tokens"] if asks else []),
    ]


def cost_cells(row: Row, rows: Sequence[Row]) -> list[str]:
    """Return one row of the table of cost."""
    has_evidence, asks = "recall" in row.means, any(other.means["llm calls"].mean for other in rows)
    memory = row.facts.get("memory_mb")
    return [
        row.name,
        *([f"{100 * row.means['recall'].mean:.1f}"] if has_evidence else []),
        cell("tokens", row.means["tokens"]),
        *([_per_1000(row)] if has_evidence else []),
        cell("ms", row.means["ms"]),
        f"{row.facts['build_seconds']:.1f}",
        f"{row.facts['n_units']:,}",
        "" if memory is None else f"{memory:,.0f}",
        *([cell(name, row.means[name]) for name in ("llm calls", "llm tokens")] if asks else []),
    ]


def format_answers(rows: Sequence[AnswerRow]) -> str:
    """Format the table of answers as aligned lines."""
    return _aligned([answer_columns(rows[0]), *map(answer_cells, rows)])


def answer_columns(row: AnswerRow) -> list[str]:
    """Return the header of the table of answers."""
    return ["pipeline", *row.means, "input tokens", "output tokens", "quality/1k", "$/question", "quality/$"]


def answer_cells(row: AnswerRow) -> list[str]:
    """Return one row of the table of answers."""
    return [
        row.name,
        *(f"{100 * m.mean:.1f}±{50 * (m.high - m.low):.1f}" for m in row.means.values()),
        f"{row.input_tokens:,.0f}",
        f"{row.output_tokens:,.0f}",
        f"{row.quality_per_1000_tokens:.3f}",
        "" if row.cost is None else f"{row.cost:.6f}",
        "" if row.cost_efficiency is None else f"{row.cost_efficiency:,.0f}",
    ]


def format_markdown(header: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    """Format a Markdown table with its numbers to the right."""
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *body]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def cell(name: str, value: Interval, comparison: Comparison | None = None) -> str:
    """Format one value: shares in percent with their margin, counts and milliseconds without."""
    if name in ("tokens", "llm tokens"):
        return f"{value.mean:,.0f}"
    if name in ("ms", "llm calls"):
        return f"{value.mean:.1f}"
    if not name.startswith(_SHARES):
        return f"{value.mean:.3f}"
    sign = " "
    if comparison is not None and comparison.p_value < SIGNIFICANT:
        sign = "+" if comparison.difference.mean > 0 else "-"
    return f"{100 * value.mean:.1f}±{50 * (value.high - value.low):.1f}{sign}"


def _per_1000(row: Row) -> str:
    """Format the recall per 1,000 tokens, in percent; empty without evidence."""
    return "" if row.recall_per_1000_tokens is None else f"{100 * row.recall_per_1000_tokens:.1f}"


def _aligned(lines: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])]) for line in lines
    )
