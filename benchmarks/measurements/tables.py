"""What the sections share: titles of the sets, recall tables, and how a section is put together."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from benchmarks.measurements.results import Result, Table
from precise_rag.evaluation.report.tables import format_markdown

TITLES = {
    "squad": "SQuAD",
    "fairytaleqa": "FairytaleQA",
    "hotpotqa": "HotpotQA",
    "nq": "NQ",
    "covidqa": "COVID-QA",
    "cuad": "CUAD",
    "qmsum": "QMSum",
    "rgb": "RGB",
    "xquad/en": "XQuAD English",
    "xquad/de": "XQuAD German",
    "xquad/zh": "XQuAD Chinese",
    "xquad/ar": "XQuAD Arabic",
}
SIGNS = (
    "Recall (%) by tokens sent; bold: the best of the column; + or -: significantly better or worse than the "
    "baseline, which the full result names. Kept recall and kept tokens: all that a pipeline keeps; ms: one "
    "question whose vector is known."
)


def section(title: str, parts: Iterable[str]) -> str:
    """A section of the page."""
    return "\n\n".join([f"## {title}", *parts])


def means(result: Result) -> dict[str, Table]:
    """The tables of means in the result of a plan, by the names of their sets."""
    headings = re.findall(r"^## (Mean over (.*))$", result.page, re.MULTILINE)
    return {
        ", ".join(TITLES[name] for name in sets.split(", ")): result.table(f"{heading}\n")
        for heading, sets in headings
    }


def fullest(found: Mapping[str, Table]) -> Table:
    """The table with most pipelines."""
    return max(found.values(), key=lambda table: len(table[1]))


def titled(table: Table) -> str:
    """A table whose first column begins with the name of a set."""
    header, rows = table
    shown = [
        [re.sub(r"^[\w/]+(?= \(\d)", lambda name: TITLES.get(name[0], name[0]), row[0]), *row[1:]]
        for row in rows
    ]
    return format_markdown(header, shown)


def mean(rows: Sequence[Mapping[str, Any]], name: str) -> float:
    """The mean of one column."""
    return sum(row[name] for row in rows) / len(rows)
