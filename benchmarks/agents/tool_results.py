"""How many tokens of a tool's long result are left, and is what answers among them?

    python -m benchmarks.agents.tool_results --data DIR

Results are pages of documentation that are on this machine (`benchmarks/adoption/documentation.jsonl` has
the questions), the same pages as JSON of a fetching tool, documents of development sets, and logs and JSON
that are made up (`benchmarks/agents/made.py`), asked in other words than the answers', and in theirs.
*Answered*: all passages of the answer are there; of development sets the share of the evidence, in
characters. *Beginning*: the same for the first tokens of the result, as many as were kept.
"""

import json
import random
import re
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

from benchmarks.adoption.documentation import read_questions, write_documents
from benchmarks.agents.made import Result, logs, records
from benchmarks.questions import question_sets
from benchmarks.record import made, parse_arguments, save
from precise_rag import prune
from precise_rag.evaluation.report.tables import format_markdown
from precise_rag.tokens import estimate_tokens

MODULE = "benchmarks.agents.tool_results"
_PAGES = 24
_MADE = 10
_IGNORED = re.compile(r'[\s|]+|\\[nrt"]')


class Line(NamedTuple):
    """What became of one result. kept, beginning: share of what answers that is there."""

    kind: str
    before: int
    after: int
    kept: float
    beginning: float
    seconds: float


def pages(n: int) -> Iterator[Result]:
    """Yield documentation as text and, beside it, as a fetching tool returns it."""
    with tempfile.TemporaryDirectory() as name:
        there = set(write_documents(Path(name)))
        for asked in [one for one in read_questions() if one.document in there][:n]:
            text = (Path(name) / asked.document).read_text("utf-8")
            yield Result("documentation", text, asked.question, asked.answer)
            fetched = {"url": f"https://docs.example/{asked.document}", "status": 200, "content": text}
            yield Result("documentation in JSON", json.dumps(fetched), asked.question, asked.answer)


def measured(result: Result, max_tokens: int) -> Line:
    """Prune one result."""
    began = time.perf_counter()
    pruned = prune(result.text, result.question, max_tokens)
    seconds = time.perf_counter() - began
    first = beginning(result.text, pruned.n_tokens)
    return Line(
        result.kind,
        pruned.n_tokens_before,
        pruned.n_tokens,
        float(has_all(pruned.text, result.answers)),
        float(has_all(first, result.answers)),
        seconds,
    )


def has_all(text: str, answers: Sequence[str]) -> bool:
    """Whether all passages are in a text, whatever white space and escapes are in them."""
    plain = _IGNORED.sub("", text)
    return all(_IGNORED.sub("", answer) in plain for answer in answers)


def beginning(text: str, n_tokens: int) -> str:
    """The first tokens of a text."""
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if estimate_tokens(text[:middle]) <= n_tokens else (low, middle - 1)
    return text[:low]


def evidence_lines(args: Any, max_tokens: int) -> Iterator[Line]:
    """Prune the whole document of each question of the development sets."""
    for dataset in question_sets(args):
        documents = {document.id: document for document in dataset.documents}
        for question in dataset.questions:
            spans = [one for one in question.evidence if one.doc_id == question.evidence[0].doc_id]
            text = documents[spans[0].doc_id].text
            if estimate_tokens(text) <= max_tokens:
                continue
            began = time.perf_counter()
            pruned = prune(text, question.text, max_tokens)
            seconds = time.perf_counter() - began
            n_first = len(beginning(text, pruned.n_tokens))
            wanted = [place for span in spans for place in range(span.start, span.end)]
            sent = {place for e in pruned.excerpts for place in range(e.start, e.end)}
            yield Line(
                dataset.name,
                pruned.n_tokens_before,
                pruned.n_tokens,
                mean(place in sent for place in wanted),
                mean(place < n_first for place in wanted),
                seconds,
            )


def table(lines: Sequence[Line]) -> str:
    """One row a kind."""
    rows = []
    for kind in dict.fromkeys(line.kind for line in lines):
        same = [line for line in lines if line.kind == kind]
        before, after = (mean(getattr(line, name) for line in same) for name in ("before", "after"))
        rows.append(
            [
                kind,
                str(len(same)),
                f"{before:,.0f}",
                f"{after:,.0f}",
                f"{100 * after / before:.1f}",
                f"{100 * mean(line.kept for line in same):.0f}",
                f"{100 * mean(line.beginning for line in same):.0f}",
                f"{mean(line.seconds for line in same):.2f}",
            ]
        )
    header = ["results", "number", "tokens before", "after", "%", "answered %", "beginning %", "seconds"]
    return format_markdown(header, rows)


def main() -> None:
    parser = parse_arguments(MODULE, __doc__, "squad,covidqa,fairytaleqa", sample=25)
    parser.add_argument("--max-tokens", default="400,1000", help="budgets (%(default)s)")
    args = parser.parse_args()
    rng = random.Random(args.seed)
    results = [*pages(_PAGES), *logs(_MADE, 600, rng), *records(_MADE, 150, rng)]
    parts, data = [], {}
    for max_tokens in map(int, args.max_tokens.split(",")):
        long = [result for result in results if estimate_tokens(result.text) > max_tokens]
        lines = [measured(result, max_tokens) for result in long]
        lines += evidence_lines(args, max_tokens)
        parts.append(f"## At most {max_tokens:,} tokens\n\n{table(lines)}")
        data[str(max_tokens)] = [line._asdict() for line in lines]
    text = "\n\n".join(
        ["# Long results of tools, cut by `prune`", (__doc__ or "").partition("--data DIR\n")[2], *parts]
    )
    save("agents", "tool-results", made(MODULE, args), text, {"lines": data})


if __name__ == "__main__":
    main()
