"""Read the newest result of a benchmark, and the tables of its page."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from precise_rag.evaluation.report.tables import format_markdown

BENCHMARKS = Path(__file__).parent
FULL = "https://github.com/precise-rag/precise-rag/blob/main/benchmarks"
"""Where pages link results to; the documentation's site does not hold them."""


class Table(NamedTuple):
    """A table of a result: the names of its columns, and its rows of cells."""

    header: list[str]
    rows: list[list[str]]

    def only(self, rows: Callable[[list[str]], Any] = bool, columns: str = "") -> "Table":
        """The rows that a function accepts, and the columns whose names match a pattern; default: all."""
        at = [place for place, name in enumerate(self.header) if re.search(columns, name)]
        names = [self.header[place] for place in at]
        return Table(names, [[row[column] for column in at] for row in self.rows if rows(row)])

    def __str__(self) -> str:
        return format_markdown(self.header, self.rows)


class Result(NamedTuple):
    """A dated result: its JSON as `data` and its Markdown as `page`; empty if the file is missing."""

    topic: str
    name: str
    date: str
    data: dict[str, Any]
    page: str

    @property
    def made(self) -> dict[str, Any]:
        """Command, date, machine and versions."""
        return self.data.get("made", {})

    @property
    def source(self) -> str:
        """Command, machine and date, with a link to the whole result."""
        facts = [self.made["machine"], f"Python {self.made['python']}" if "python" in self.made else ""]
        if sample := self.made.get("questions a set at most"):
            facts.append(f"at most {sample} questions a set")
        return f"`{self.made['command']}`, {self.date}: {', '.join(filter(None, facts))} ({self.link})."

    @property
    def link(self) -> str:
        """A link to the page, or to the JSON without a page."""
        suffix = "md" if self.page else "json"
        return f"[full result]({FULL}/{self.topic}/results/{self.name}-{self.date}.{suffix})"

    def table(self, heading: str = "", nth: int = 0) -> Table:
        """The nth table of the page after a heading that begins so."""
        at = self.page.index(f"# {heading}") if heading else 0
        return tables(self.page[at:])[nth]


def newest(topic: str, name: str) -> Result:
    """The newest result of that name in benchmarks/<topic>/results.

    Raises FileNotFoundError without one.
    """
    pattern = re.compile(rf"{re.escape(name)}-(\d{{4}}-\d\d-\d\d)\.(?:json|md)")
    folder = BENCHMARKS / topic / "results"
    dates = [found[1] for path in folder.iterdir() if (found := pattern.fullmatch(path.name))]
    if not dates:
        raise FileNotFoundError(f"no result {name}-<date> in {folder}; run the benchmark first")
    date = max(dates)
    data, page = (folder / f"{name}-{date}{suffix}" for suffix in (".json", ".md"))
    return Result(
        topic,
        name,
        date,
        json.loads(data.read_text(encoding="utf-8")) if data.exists() else {},
        page.read_text(encoding="utf-8") if page.exists() else "",
    )


def tables(text: str) -> list[Table]:
    """All Markdown tables of a text, in order."""
    found = []
    for block in re.findall(r"(?:^\|.*\n?)+", text, re.MULTILINE):
        header, _, *rows = [
            [cell.strip() for cell in line.strip().strip("|").split("|")] for line in block.splitlines()
        ]
        found.append(Table(header, rows))
    return found
