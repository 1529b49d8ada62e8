"""The section about stock applications of LlamaIndex and LangChain of which one line is changed."""

from benchmarks.measurements.results import newest
from benchmarks.measurements.tables import TITLES, section
from precise_rag.evaluation.report.tables import format_markdown


def adoption() -> str:
    """What each line of the migration page sends."""
    result = newest("adoption", "adoption")
    header, rows = result.table("Mean of")
    sets = ", ".join(TITLES[name] for name in dict.fromkeys(row["set"] for row in result.data["rows"]))
    return section(
        "One line of a stock application",
        [
            "What does an application send after one line of the [migration page](guides/migration.md) was "
            "changed?",
            result.source,
            f"Mean of {sets}. Evidence: share of a question's evidence that is sent. Of stock: the tokens "
            "in percent of those with which the stock application sends as much of the evidence, by a larger "
            "top k; a dash where it never does. Asked: tokens of the prompts of a relevance filter, whose "
            "model is always right here.",
            format_markdown(header, [row for row in rows if not row[2].startswith("top ") or "`" in row[2]]),
        ],
    )
