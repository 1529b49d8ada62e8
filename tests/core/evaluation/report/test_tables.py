"""Tables for a terminal."""

from precise_rag.evaluation import Outcome, format_markdown
from precise_rag.evaluation.report.tables import format_table


def test_the_tables_of_quality_and_cost(outcome: Outcome) -> None:
    quality, cost = format_table(outcome.rows).split("\n\n")
    assert "recall@20" in quality
    assert "memory MB" in cost
    assert len({len(line) for line in quality.splitlines()}) == 1, "the columns are aligned"
    for row in outcome.rows:
        assert row.facts["build_seconds"] > 0
        assert row.facts["memory_mb"] is None or row.facts["memory_mb"] >= 0


def test_markdown() -> None:
    assert format_markdown(["a", "b"], [["x", "1"]]) == "| a | b |\n| --- | ---: |\n| x | 1 |"
