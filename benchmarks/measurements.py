"""Compose docs/measurements.md from the newest results, so that no figure is typed by hand.

    python -m benchmarks.measurements             # write docs/measurements.md
    python -m benchmarks.measurements --readme    # print the table for README.md
    python -m benchmarks.measurements --check     # exit 1 if the page or README's table is out of date

The text of the page is `measurements.template`. There, {source TOPIC/NAME} is the command, machine, date and
link of a result, {over TOPIC/NAME} are its sets, and a line "@table TOPIC/NAME {…}" is a table of its page:
the `nth` one below a `heading`, `only` the rows whose cells match patterns or `without` them, and the
`columns` whose names match; or a table that is made `by` a function of this module. The page shows the means;
the result that each section links has every set and interval. README.md takes its table between the lines
<!-- measurements --> and <!-- /measurements -->.
"""

import argparse
import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from statistics import mean
from typing import Any

from benchmarks.results import Result, Table, newest

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "measurements.md"
TEMPLATE = Path(__file__).with_suffix(".template")
README = ROOT / "README.md"
OPENING, CLOSING = "<!-- measurements -->", "<!-- /measurements -->"

OURS = {
    "recursive 200, BM25 + dense": "recursive splitter, BM25 + dense",
    "precise Hybrid": "precise-rag: `HybridIndex`",
    "precise whole path": "precise-rag: the whole path",
    "precise as it comes": "precise-rag: `PreciseRAG` as it comes",
}
"""Pipelines of README's table beside the best of LangChain and LlamaIndex, and their labels."""


def compose() -> str:
    """The whole page."""
    text = TEMPLATE.read_text(encoding="utf-8")
    text = re.sub(r"\{source (\S+)\}", lambda found: _result(found[1]).source, text)
    text = re.sub(r"\{over (\S+)\}", lambda found: _over(_result(found[1])), text)
    return re.sub(
        r"^@table (\S+) ?(.*)$",
        lambda found: str(_table(_result(found[1]), **json.loads(found[2] or "{}"))),
        text,
        flags=re.MULTILINE,
    )


def _result(name: str) -> Result:
    return newest(*name.split("/"))


def _over(result: Result) -> str:
    """The sets of the first table of means."""
    return re.search(r"^## (M)(ean over .*)$", result.page, re.MULTILINE).expand(r"m\2")


def _table(
    result: Result,
    heading: str = "",
    nth: int = 0,
    only: Mapping[str, str] | None = None,
    without: Mapping[str, str] | None = None,
    columns: str = "",
    by: str = "",
) -> Table:
    """A table of a result as the template asks for it."""
    whole = TABLES[by](result.data) if by else result.table(heading, nth)

    def is_shown(row: list[str]) -> bool:
        cells = dict(zip(whole.header, row, strict=True))
        wanted = all(re.search(pattern, cells[name]) for name, pattern in (only or {}).items())
        return wanted and not any(re.search(p, cells[name]) for name, p in (without or {}).items())

    return whole.only(is_shown, columns)


def _rerankers(data: Mapping[str, Any]) -> Table:
    header = ["reranker", "candidates", "nDCG@10, sets not trained on", "nDCG@10, all sets", "ECE", "ms"]
    rows = []
    for one in data["reliability"]:
        same = [r for r in data["rows"] if (r["ranker"], r["kind"]) == (one["ranker"], one["kind"])]
        ndcg = [r["nDCG@10"] for name in ("unseen sets", "all") for r in same if r["set"] == name]
        ms = mean(r["ms"] for r in same if r["questions"])
        figures = [f"{value:.3f}" for value in (*ndcg, one["ECE"])]
        rows.append([one["ranker"], one["kind"], *figures, f"{ms:.1f}"])
    return Table(header, rows).only(lambda row: row[1] in ("sentences", "passages"))


TABLES = {"rerankers": _rerankers}
"""Tables that no page of a result has."""


def readme_table() -> str:
    """The best pipelines of LangChain and LlamaIndex, plain hybrid search, and ours, for README.md.

    Which are the best says the run of all pipelines; the figures are those of the newest run of these few.
    """
    every, few = _fullest(newest("peers", "peers")), _fullest(newest("peers", "peers-few"))
    shown = few.only(columns=r"^(pipeline|\d+|kept tokens)$")
    cells = {row[0]: [re.sub(r" [+-]$", "", cell) for cell in row[1:]] for row in shown.rows}

    def recall(row: list[str]) -> float:
        return sum(float(cell.strip("*+- ")) for cell in row[1:5])

    libraries = ("LangChain", "LlamaIndex")
    best = [max((r for r in every.rows if r[0].startswith(library)), key=recall)[0] for library in libraries]
    labels = {name: f"{name} (best of {library})" for name, library in zip(best, libraries, strict=True)}
    rows = [[label, *cells[name]] for name, label in {**labels, **OURS}.items()]
    return str(Table(shown.header, rows))


def _fullest(result: Result) -> Table:
    """The table of means with most pipelines."""
    headings = re.findall(r"^## (Mean over .*\n)", result.page, re.MULTILINE)
    return max((result.table(heading) for heading in headings), key=lambda table: len(table.rows))


def out_of_date() -> list[str]:
    """The files that differ from what the results give, each with what to do."""
    found = []
    if not PAGE.exists() or PAGE.read_text(encoding="utf-8") != compose():
        found.append(f"{PAGE.relative_to(ROOT)} is out of date; run python -m benchmarks.measurements")
    _, marked, rest = README.read_text(encoding="utf-8").partition(OPENING)
    if marked and rest.partition(CLOSING)[0].strip() != readme_table():
        found.append(
            "README.md is out of date; put in what python -m benchmarks.measurements --readme prints"
        )
    return found


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.measurements", description=__doc__.splitlines()[0]
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--check", action="store_true", help="exit 1 if the page or README.md is out of date")
    what.add_argument("--readme", action="store_true", help="print the table for README.md")
    args = parser.parse_args()
    if args.readme:
        print(readme_table())
    elif args.check:
        found = out_of_date()
        print("\n".join(found) or "up to date")
        return int(bool(found))
    else:
        PAGE.write_text(compose(), encoding="utf-8")
        print(PAGE.relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main())
