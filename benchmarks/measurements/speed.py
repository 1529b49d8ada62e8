"""The section about speed: what a question costs, and the networks beside those of other libraries."""

from benchmarks.measurements.results import newest
from benchmarks.measurements.tables import section
from precise_rag.evaluation.report.tables import format_markdown


def speed() -> str:
    """Cost of a question, and of the networks."""
    latency, networks = newest("peers", "latency"), newest("peers", "networks")
    return section(
        "Speed on a CPU",
        [
            "How much does a question cost, from its text to the selected context?",
            f"{latency.source} An index of 5,000 sentences; callers are threads that ask without a pause.",
            format_markdown(*latency.table()),
            "### The networks",
            f"{networks.source} The same weights and texts for all; CPU seconds, the median of three rounds.",
            format_markdown(*networks.table()),
        ],
    )
