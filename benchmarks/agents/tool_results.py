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
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

from benchmarks.adoption.documentation import read_questions, write_documents
from benchmarks.agents.made import Result, logs, records
from benchmarks.questions import question_sets
from benchmarks.record import about, made, parse_arguments, save
from benchmarks.tables import table
from benchmarks.timing import timed
from precise_rag import prune
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


def pruned(kind: str, text: str, question: str, max_tokens: int, share: Callable[..., float]) -> Line:
    """Prune a text. share: of what answers, in a text that is left and in its excerpts."""
    seconds, _, left = timed(lambda: prune(text, question, max_tokens))
    first = beginning(text, left.n_tokens)
    kept = share(left.text, [(e.start, e.end) for e in left.excerpts])
    return Line(kind, left.n_tokens_before, left.n_tokens, kept, share(first, [(0, len(first))]), seconds)


def measured(result: Result, max_tokens: int) -> Line:
    """Prune one result."""

    def share(text: str, spans: Any) -> float:
        return float(has_all(text, result.answers))

    return pruned(result.kind, result.text, result.question, max_tokens, share)


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

            def share(text: str, sent: Sequence[tuple[int, int]], spans: Any = spans) -> float:
                places = {place for start, end in sent for place in range(start, end)}
                return mean(place in places for span in spans for place in range(span.start, span.end))

            if estimate_tokens(text) > max_tokens:
                yield pruned(dataset.name, text, question.text, max_tokens, share)


def by_kind(lines: Sequence[Line]) -> str:
    """One row a kind."""
    rows = []
    for kind in dict.fromkeys(line.kind for line in lines):
        same = [line for line in lines if line.kind == kind]
        before, after, kept, first, seconds = (mean(values) for values in list(zip(*same, strict=True))[1:])
        rows.append(
            {
                "results": kind,
                "number": len(same),
                "tokens before": round(before),
                "after": round(after),
                "%": 100 * after / before,
                "answered %": round(100 * kept),
                "beginning %": round(100 * first),
                "seconds": f"{seconds:.2f}",
            }
        )
    return table(rows)


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
        parts.append(f"## At most {max_tokens:,} tokens\n\n{by_kind(lines)}")
        data[str(max_tokens)] = [line._asdict() for line in lines]
    text = "\n\n".join(["# Long results of tools, cut by `prune`", about(__doc__), *parts])
    save("agents", "tool-results", made(MODULE, args), text, {"lines": data})


if __name__ == "__main__":
    main()
