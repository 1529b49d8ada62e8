"""The section about speed: a question, the networks, and what reading less costs."""

from benchmarks.measurements.results import newest
from benchmarks.measurements.tables import section
from precise_rag.evaluation.report.tables import format_markdown


def speed() -> str:
    """Time to the context, and the networks beside those of other libraries."""
    latency, networks = newest("peers", "latency"), newest("peers", "networks")
    reading = newest("evidence", "reading")
    return section(
        "Speed on a CPU",
        [
            "How much does a question cost, from its text to the selected context?",
            f"{latency.source} One process, asked by several threads without a pause.",
            format_markdown(*latency.table()),
            "### The networks",
            f"{networks.source} The same weights and texts for all; CPU seconds, the median of three rounds.",
            format_markdown(*networks.table()),
            "### Rounding and reading less",
            f"{reading.source} What the cascade's int8 and its early end change in what is sent: recall (%), "
            "with the difference to reading 20 candidates in float32 and its 95 % interval. ms: CPU time of "
            "reranking.",
            format_markdown(*reading.table()),
        ],
    )
