"""What SAGE's figures and insights say, measured: complete segments, distractors, ranks, and any retriever.

    python -m benchmarks.papers.insights --data DIR [--parts segments,ranks,retrievers,distractors]

*Segments* (Fig. 10): share of the pieces that begin with a word for what was said before ("it", "however")
and so were cut off from it; the first piece of a document does not count. *Ranks* (Fig. 5): where the first
evidence stands among 50 candidates as each retriever gives them, and as the default reranker orders them.
*Retrievers* (Tables II and III): the evidence and the tokens of the 7 best chunks of 200 tokens, and of what
the default path makes of the same retriever. *Distractors* (Fig. 8): the same for a collection to which
documents of another set are added, so many times its own size. Collections are the documents of the sets up
to --characters that no packaged model was trained on.
"""

import json
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import record
from benchmarks.adoption.__main__ import held_out
from benchmarks.adoption.app import Piece, covered
from benchmarks.papers.answers import sent
from precise_rag import PreciseRAG, Segmenter
from precise_rag.documents import read_documents
from precise_rag.evaluation.datasets import Question
from precise_rag.evaluation.report.tables import format_markdown
from precise_rag.evidence.needs import leans
from precise_rag.index import BM25Index, DenseIndex, HybridIndex
from precise_rag.presets import load_preset
from precise_rag.protocols import Encoder
from precise_rag.rerank import load_reranker, rerank
from precise_rag.segmentation import GreedySegmenter
from precise_rag.sentences import split_sentences
from precise_rag.tokens import estimate_tokens
from precise_rag.types import Candidate, Document

Rows = list[dict[str, Any]]
CHUNKS = "200 tokens"
PLAIN = 7
N_FOUND = 50
TIMES = (0, 1, 3)
"""Sizes of the distracting documents, in sizes of the collection."""
DISTRACTING = "train_docs_wikipedia"


def retrievers(documents: Sequence[Document], encoder: Encoder) -> Iterator[tuple[str, Any, Any]]:
    """Yield each retriever's name, its index of chunks, and the index that the default path searches."""
    words = BM25Index.build(documents, chunks=CHUNKS)
    yield "BM25", words, words
    dense = DenseIndex.build(documents, encoder, chunks=CHUNKS)
    yield "dense", dense, dense
    hybrid = HybridIndex.build(documents, encoder)
    yield "hybrid", _Passages(hybrid), hybrid


class _Passages:
    """The passages of a hybrid index, for plain search."""

    def __init__(self, index: HybridIndex) -> None:
        self.index = index

    def search(self, query: str, top_k: int) -> list[Candidate]:
        return self.index.search(query, top_k, returns="passage")


def segments(name: str, args: Namespace, encoder: Encoder) -> Rows:
    """How often a piece begins with what leans on the piece before."""
    documents, _ = held_out(name, args)
    sage = load_preset("sage").index_options(encoder)["chunks"]
    ways: dict[str, Callable[[str], list[str]]] = {
        "sentences": lambda text: [text[a:b] for a, b in split_sentences(text)],
        CHUNKS: packed,
        "`small`": lambda text: [chunk.text for chunk in small.segment(text)],
        "preset sage": lambda text: [chunk.text for chunk in sage.segment(text)],
        "greedy (chunkrag)": lambda text: [chunk.text for chunk in greedy.segment(text)],
    }
    small, greedy = Segmenter.from_pretrained("small"), GreedySegmenter(encoder)
    rows = []
    for way, split in ways.items():
        later = [piece for document in documents for piece in split(document.text)[1:] if piece.strip()]
        leaning = [leans(piece.lstrip()) for piece in later]
        rows.append(
            {
                "set": name,
                "pieces by": way,
                "pieces": len(later),
                "tokens a piece": _mean([estimate_tokens(piece) for piece in later]),
                "begin leaning (%)": 100 * _mean(leaning),
            }
        )
    return rows


def packed(text: str, limit: int = 200) -> list[str]:
    """Whole sentences in pieces of at most `limit` tokens, as the paper's naive RAG cuts."""
    starts, size = [0], 0
    for start, end in split_sentences(text):
        length = estimate_tokens(text[start:end])
        if size and size + length > limit:
            starts.append(start)
            size = 0
        size += length
    return [text[start:end] for start, end in pairwise([*starts, len(text)])]


def ranks(name: str, args: Namespace, encoder: Encoder) -> Rows:
    """Where the first evidence stands before and after reranking."""
    documents, questions = held_out(name, args)
    reranker = load_reranker("default")
    rows = []
    for title, index, _ in retrievers(documents, encoder):
        places: dict[str, list[float]] = {"as found": [], "reranked": []}
        for question in questions:
            found = index.search(question.text, N_FOUND)
            places["as found"].append(_rank(question, found))
            places["reranked"].append(_rank(question, rerank(question.text, found, reranker)))
        for order, found_at in places.items():
            shares = {f"in {k} best (%)": 100 * float(np.mean(np.array(found_at) <= k)) for k in (1, 3, 7)}
            rows.append({"set": name, "retriever": title, "order": order, **shares})
    return rows


def compared(
    name: str, args: Namespace, encoder: Encoder, documents: Sequence[Document], questions: Any
) -> Rows:
    """Each retriever by itself and with the default path."""
    rows = []
    for title, index, source in retrievers(documents, encoder):
        rag = PreciseRAG(source)
        kept: dict[str, list[tuple[float, int]]] = {f"{PLAIN} best": [], "with the path": []}
        for question in questions:
            plain = index.search(question.text, PLAIN)
            kept[f"{PLAIN} best"].append((_evidence(question, plain), _size([c.text for c in plain])))
            selection = rag.retrieve(question.text)
            kept["with the path"].append((_evidence(question, selection.kept), _size(sent(rag, selection))))
        for way, pairs in kept.items():
            evidence, tokens = np.mean(pairs, axis=0)
            rows.append(
                {
                    "set": name,
                    "retriever": title,
                    "sent": way,
                    "evidence (%)": 100 * float(evidence),
                    "tokens": float(tokens),
                }
            )
    return rows


def selected(name: str, args: Namespace, encoder: Encoder) -> Rows:
    """Each retriever with and without our selection."""
    documents, questions = held_out(name, args)
    return compared(name, args, encoder, documents, questions)


def distractors(name: str, args: Namespace, encoder: Encoder) -> Rows:
    """The same as the collection grows by documents of another kind."""
    documents, questions = held_out(name, args)
    size = sum(len(document.text) for document in documents)
    others = list(read_documents(Path(args.data) / f"{DISTRACTING}.jsonl.gz"))
    rows = []
    for times in TIMES:
        added: list[Document] = []
        for other in others:
            room = times * size - sum(len(document.text) for document in added)
            if room <= 0:
                break
            added.append(Document(f"other {len(added)}", other.text[:room]))
        found = compared(name, args, encoder, [*documents, *added], questions)
        rows += [{"distractors": f"{times} times", **row} for row in found]
    return rows


PARTS: Mapping[str, tuple[str, Callable[[str, Namespace, Encoder], Rows]]] = {
    "segments": ("Segments that begin with what was cut off", segments),
    "ranks": ("Rank of the first evidence", ranks),
    "retrievers": ("Any retriever, with and without the path behind it", selected),
    "distractors": ("Distracting documents", distractors),
}


def _rank(question: Question, found: Sequence[Candidate]) -> float:
    """The rank of the first candidate that has evidence, from 1; infinity without one."""
    for place, candidate in enumerate(found, start=1):
        if any(
            e.doc_id == candidate.doc_id and e.start < candidate.end and candidate.start < e.end
            for e in question.evidence
        ):
            return place
    return float("inf")


def _evidence(question: Question, kept: Sequence[Candidate]) -> float:
    return covered(question, [Piece(c.doc_id, c.start, c.end, c.text) for c in kept])


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if len(values) else float("nan")


def _size(texts: Sequence[str]) -> int:
    return sum(map(estimate_tokens, texts))


def run(args: Namespace, encoder: Encoder) -> dict[str, Rows]:
    """The rows of each part."""
    results: dict[str, Rows] = {}
    for part in args.parts.split(","):
        results[part] = []
        for name in args.sets.split(","):
            results[part] += (rows := PARTS[part][1](name, args, encoder))
            print(part, json.dumps(rows), flush=True)
    return results


def render(results: Mapping[str, Rows]) -> str:
    parts = ["# Segments, ranks, retrievers and distractors", (__doc__ or "").split("\n\n", 2)[2].strip()]
    for part, rows in results.items():
        cells = [[f"{v:,.1f}" if isinstance(v, float) else f"{v}" for v in row.values()] for row in rows]
        parts += [f"## {PARTS[part][0]}", format_markdown(list(rows[0]), cells)]
    return "\n\n".join(parts)


def main() -> None:
    parser = record.parse_arguments(__spec__.name, __doc__, "squad,covidqa", sample=20)
    record.add_encoder(parser)
    parser.add_argument("--characters", type=int, default=60_000, help="of a set's documents (%(default)s)")
    parser.add_argument("--parts", default=",".join(PARTS), help="default: all")
    args = parser.parse_args()
    results = run(args, record.cached_encoder(args))
    record.save("papers", "insights", record.made(__spec__.name, args), render(results), {"results": results})


if __name__ == "__main__":
    main()
