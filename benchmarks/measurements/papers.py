"""Sections about feedback with several users, and the papers' own tables."""

import re

from benchmarks.measurements.results import FULL, Result, newest
from benchmarks.measurements.tables import section
from precise_rag.evaluation.report.tables import format_markdown


def feedback() -> str:
    """Several users at a time."""
    result = newest("feedback", "concurrency")
    body = [
        [
            str(row["users"]),
            f"{row['questions_per_second']}",
            f"{row['calls_per_question']}",
            f"{row['resident_mb']:,.0f}",
            f"{row['ms']['search']['mean']:.0f} / {row['ms']['search']['p95']:.0f}",
            f"{row['ms']['rerank']['mean']:.0f} / {row['ms']['rerank']['p95']:.0f}",
        ]
        for row in result.data["users"]
    ]
    growth = ", ".join(f"{value:,.0f}" for value in result.data["resident_mb_each_100_questions"])
    header = ["users", "questions/s", "model calls a question", "memory MB"]
    return section(
        "Feedback and concurrency",
        [
            "How do latency and memory of the feedback loop grow with the number of users?",
            result.source,
            f"A call of the language model takes {result.data['delay_ms']:.0f} ms. Milliseconds: mean / "
            f"95th percentile. Memory after each hundred questions of a long run: {growth} MB.",
            format_markdown([*header, "search, ms", "rerank, ms"], body),
            "Beside the paper's figures (SAGE, Tables VIII and IX):",
            format_markdown(*result.table()),
        ],
    )


def papers() -> str:
    """The tables of the four papers."""
    sage, figure_7 = newest("papers", "sage"), newest("papers", "sage-segmentation")
    pareto, chunkrag = newest("papers", "pareto"), newest("papers", "chunkrag")
    copied: tuple[tuple[str, Result, tuple[str, ...]], ...] = (
        ("SAGE", sage, ("Tables II and III", "Table IV", "Table XI")),
        ("SAGE: cost of segmentation", figure_7, ("",)),
        ("ParetoRAG", pareto, ("Table 2", "Tables 1 and 3", "Figure 6")),
        ("ChunkRAG", chunkrag, ("Figure 3", "Table 2", "Table 3")),
    )
    parts = [
        "What comes out of the papers' own tables? No language model was at hand: where the papers score "
        "answers, the evidence that is sent is scored. The [list of every table]"
        f"({FULL}/README.md#the-papers-tables) says what could not be run."
    ]
    for title, result, headings in copied:
        parts += [f"### {title}", result.source]
        for heading in headings:
            if found := heading and re.search(rf"^## ({heading}.*)$", result.page, re.MULTILINE):
                parts.append(f"**{found[1]}**")
            parts.append(format_markdown(*result.table(heading)))
    return section("The papers", parts)
