"""Questions about two documents: what a name that nothing selected mentions brings.

    python -m benchmarks.evidence.two_places --data DIR [--sets squad covidqa] [--sample 50] [--vectors FILE]

Two questions about different documents are made one, "…, and …?", so that each has evidence in two places.
The default path ranks the sentences; they are selected with and without the question. "places": the share of
the two places of which something is sent, with the 95 % interval of the gain. Nothing was trained on these
documents.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks import record
from precise_rag import PreciseRAG, ProbabilitySelector
from precise_rag.evaluation import Question, compare_paired
from precise_rag.evaluation.report.tables import format_markdown
from precise_rag.index import HybridIndex
from precise_rag.types import Candidate
from training.candidate_lists import HALVED, cached_encoder, may_train_on, read_set

SETS = ("squad", "covidqa")


def pairs(questions: list[Question], n_pairs: int) -> Iterator[tuple[str, Question, Question]]:
    """Yield questions about two documents, with the two that each was made of."""
    order = np.random.default_rng(3).permutation(len(questions))
    drawn = [questions[row] for row in order]
    several = [
        (one, other) for one, other in zip(drawn[::2], drawn[1::2], strict=False) if one.group != other.group
    ]
    for one, other in several[:n_pairs]:
        yield f"{one.text.rstrip('?')}, and {other.text[0].lower()}{other.text[1:]}", one, other


def measure(name: str, options: Any) -> dict[str, Any]:
    """Places and tokens with and without names, over the questions of one set."""
    dataset = read_set(f"dev/{name}", options.data)
    rag = PreciseRAG(HybridIndex.build(dataset.documents, cached_encoder(options.vectors)), selector=None)
    questions = [q for q in dataset.questions if name not in HALVED or not may_train_on(q.group)]
    found: dict[str, list[tuple[float, int]]] = {"without": [], "with": []}
    for text, *parts in pairs(questions, options.sample):
        ranked = rag.retrieve(text).kept
        for way, query in (("without", ""), ("with", text)):
            kept = ProbabilitySelector().select(ranked, query).kept
            places = np.mean([_sends(kept, part) for part in parts])
            found[way].append((float(places), sum(c.n_tokens or 0 for c in kept)))
    before, after = (np.array(found[way]) for way in ("without", "with"))
    return {
        "set": name,
        "questions": len(before),
        "places without": float(before[:, 0].mean()),
        "places with": float(after[:, 0].mean()),
        "gain": compare_paired(after[:, 0], before[:, 0]).difference,
        "tokens without": float(before[:, 1].mean()),
        "tokens with": float(after[:, 1].mean()),
    }


def _sends(kept: tuple[Candidate, ...], question: Question) -> bool:
    return any(
        c.doc_id == e.doc_id and min(c.end, e.end) > max(c.start, e.start)
        for c in kept
        for e in question.evidence
    )


def main() -> None:
    parser = record.new_parser(__spec__.name, __doc__)
    parser.add_argument("--vectors", help="file that keeps sentence vectors")
    parser.add_argument("--sets", nargs="+", default=list(SETS))
    parser.add_argument("--sample", type=int, default=50, help="questions a set (%(default)s)")
    options = parser.parse_args()
    rows = [measure(name, options) for name in options.sets]
    body = [
        [
            row["set"],
            str(row["questions"]),
            *(f"{100 * row[f'places {way}']:.1f}" for way in ("without", "with")),
            f"{100 * row['gain'].mean:+.1f} ({100 * row['gain'].low:+.1f} to {100 * row['gain'].high:+.1f})",
            *(f"{row[f'tokens {way}']:.0f}" for way in ("without", "with")),
        ]
        for row in rows
    ]
    columns = ["set", "questions", "places % without", "with", "gain", "tokens without", "with"]
    markdown = f"# Questions about two documents\n\n{format_markdown(columns, body)}"
    record.save("evidence", "two-places", record.made(__spec__.name, options), markdown, {"rows": rows})


if __name__ == "__main__":
    main()
