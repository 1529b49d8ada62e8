"""How often what is sent begins with a word for something that was left behind, with and without `needs`.

    python -m benchmarks.evidence.needs --data DIR [--sets squad,qmsum] [--sample 15] [--characters 80000]

The whole path over documents that no model of ours was trained on. A span is a run of kept sentences that
follow each other. "left behind": share of the spans whose first sentence leans on the one before ("it",
"however"), which is short, leans on none itself, and is not sent. Tokens: of all kept sentences.
"""

from collections.abc import Iterator, Mapping
from typing import Any
from unittest.mock import patch

import numpy as np

from benchmarks import record
from benchmarks.adoption.__main__ import held_out
from benchmarks.adoption.app import Piece, RememberingReranker, covered
from precise_rag import PreciseRAG
from precise_rag.evaluation.report.tables import format_markdown
from precise_rag.evidence import grower
from precise_rag.evidence.needs import needs
from precise_rag.index import HybridIndex
from precise_rag.types import Candidate

MODULE = "benchmarks.evidence.needs"
COLUMNS = ("set", "questions", "needs", "left behind (%)", "spans", "tokens", "evidence (%)")
_WAYS: Mapping[str, Any] = {"without": lambda stretch: iter(()), "with": needs}


def measure(name: str, args: Any, encoder: Any) -> Iterator[list[str]]:
    """The lines of a set."""
    documents, questions = held_out(name, args)
    index = HybridIndex.build(documents, encoder)
    rag = PreciseRAG(index, reranker=RememberingReranker())
    for way, function in _WAYS.items():
        begins: list[bool] = []
        tokens, evidence = [], []
        with patch.object(grower, "needs", function):
            for question in questions:
                kept = rag.retrieve(question.text).kept
                begins += left_behind(index, kept)
                tokens.append(sum(c.n_tokens or 0 for c in kept))
                evidence.append(covered(question, [Piece(c.doc_id, c.start, c.end, c.text) for c in kept]))
        yield [
            name,
            str(len(questions)),
            way,
            f"{100 * np.mean(begins):.1f}",
            f"{len(begins) / len(questions):.1f}",
            f"{np.mean(tokens):,.0f}",
            f"{100 * np.mean(evidence):.1f}",
        ]


def left_behind(index: HybridIndex, kept: tuple[Candidate, ...]) -> Iterator[bool]:
    """For each span, whether its first sentence leans on one that was at hand."""
    ids = {candidate.id for candidate in kept}
    for stretch in index.neighbours(kept, reach=2):
        sentences = stretch.sentences
        at_hand = {row for row, needed in needs(stretch) if needed == row - 1}
        for row, sentence in enumerate(sentences):
            if sentence.id in ids and not (row and sentences[row - 1].id in ids):
                yield row in at_hand


def main() -> None:
    parser = record.parse_arguments(MODULE, __doc__, "squad,fairytaleqa,covidqa,qmsum", sample=15)
    parser.add_argument("--characters", type=int, default=80_000, help="of a set's documents (%(default)s)")
    args = parser.parse_args()
    encoder = record.cached_encoder(args)
    body = []
    for name in args.sets.split(","):
        for line in measure(name, args, encoder):
            body.append(line)
            print(*line, sep="\t", flush=True)
    about = (__doc__ or "").split("\n\n", 2)[2].strip()
    markdown = f"# What is needed to understand what is sent\n\n{about}\n\n{format_markdown(COLUMNS, body)}"
    data = {"rows": [dict(zip(COLUMNS, line, strict=True)) for line in body]}
    record.save("evidence", "needs", record.made(MODULE, args), markdown, data)


if __name__ == "__main__":
    main()
