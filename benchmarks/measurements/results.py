"""Read the newest result of a benchmark, and the tables of its page."""

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

BENCHMARKS = Path(__file__).parents[1]
FULL = "https://github.com/precise-rag/precise-rag/blob/main/benchmarks"
"""Where pages link results to; the documentation's site does not hold them."""

Table = tuple[list[str], list[list[str]]]
"""Header and rows."""


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
        found.append((header, rows))
    return found


def command_before(text: str, table: str) -> str:
    """The last command (`python -m …`) that a text names before some words of a table."""
    return re.findall(r"`(python -m [^`]*)`", text[: text.index(table)])[-1]
