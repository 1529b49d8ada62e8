"""What SAGE's figures and insights say, measured: complete segments, distractors, ranks, and any retriever.

    python -m benchmarks.papers.insights --data DIR [--parts segments,ranks,retrievers,distractors]

*Segments* (Fig. 10): share of the pieces that begin with a word for what was said before ("it", "however")
and so were cut off from it; the first piece of a document does not count. *Ranks* (Fig. 5): where the first
evidence stands among 50 candidates as each retriever gives them, and as the default reranker orders them.
*Retrievers* (Tables II and III): the evidence and the tokens of the 7 best chunks of 200 tokens, and of what
the default path makes of the same retriever. *Distractors* (Fig. 8): the same for a collection to which
articles of Wikipedia are added, so many times its own size. Intervals are of 95 %, over questions or pieces.
No question is about a document that a packaged model was trained on. What was measured is kept in the work
folder (--work), so that a run that was stopped goes on where it was.
"""

import json
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks import record
from benchmarks.adoption.app import RememberingReranker
from benchmarks.papers.contexts import collection, file_of, remembered, with_interval
from benchmarks.sent import covered
from benchmarks.tables import table
from precise_rag import PreciseRAG, Segmenter
from precise_rag.context import context_passages
from precise_rag.documents import read_documents
from precise_rag.evaluation.datasets import Question
from precise_rag.evidence.needs import leans
from precise_rag.index import BM25Index, DenseIndex, HybridIndex
from precise_rag.presets import load_preset
from precise_rag.protocols import Encoder
from precise_rag.rerank import rerank
from precise_rag.segmentation import GreedySegmenter
from precise_rag.sentences import split_sentences
from precise_rag.tokens import estimate_tokens
from precise_rag.types import Candidate, Document

Rows = list[dict[str, Any]]
CHUNKS = "200 tokens"
PLAIN = 7
N_FOUND = 50
RETRIEVERS = ("BM25", "dense", "hybrid")
DISTRACTING = "train_docs_wikipedia"


def retrievers(documents: Sequence[Document], encoder: Encoder) -> dict[str, tuple[Any, Any]]:
    """Each retriever's index of chunks, and the index that the default path searches, by its name."""
    words, dense = (
        BM25Index.build(documents, chunks=CHUNKS),
        DenseIndex.build(documents, encoder, chunks=CHUNKS),
    )
    hybrid = HybridIndex.build(documents, encoder)
    made = ((words, words), (dense, dense), (_Passages(hybrid), hybrid))
    return dict(zip(RETRIEVERS, made, strict=True))


class _Passages:
    """The passages of a hybrid index, for plain search."""

    def __init__(self, index: HybridIndex) -> None:
        self.index = index

    def search(self, query: str, top_k: int) -> list[Candidate]:
        return self.index.search(query, top_k, returns="passage")


def segments(name: str, args: Namespace, encoder: Encoder) -> Rows:
    """How often a piece begins with what leans on the piece before."""
    documents, _ = asked(name, args)
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
                "begin leaning (%)": _shown(leaning),
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


class Measured(NamedTuple):
    """What a retriever and the default path behind it make of a question.

    rank, reranked: of the first evidence among 50 candidates, from 1; infinity without one.
    plain, path: the share of the evidence that is sent, and the tokens, of the 7 best and with the path.
    """

    rank: float
    reranked: float
    plain: tuple[float, int]
    path: tuple[float, int]


def measured(name: str, args: Namespace, encoder: Encoder, times: int = 0) -> dict[str, list[Measured]]:
    """Each question by retriever, with distracting documents of `times` the size of the collection."""
    documents, questions = asked(name, args)
    room = times * sum(len(document.text) for document in documents)
    made = cache(lambda: retrievers([*documents, *distracting(args, room)], encoder))
    reranker = RememberingReranker()

    def measure(retriever: str, question: Question) -> tuple[Any, ...]:
        index, source = made()[retriever]
        found = index.search(question.text, N_FOUND)
        selection = PreciseRAG(source, reranker=reranker, reader=None).retrieve(question.text)
        texts = [passage.text for passage in context_passages(selection)]
        return (
            _rank(question, found),
            _rank(question, rerank(question.text, found, reranker)),
            (covered(question, found[:PLAIN]), _size([c.text for c in found[:PLAIN]])),
            (covered(question, selection.kept), _size(texts)),
        )

    by_retriever = {}
    for one in args.retrievers.split(","):
        file = file_of(args, "insights", name, str(times), one)
        title = f"{name}, {times} times distractors, {one}"
        values = remembered(file, questions, partial(measure, one), title)
        by_retriever[one] = [Measured(*value) for value in values]
    return by_retriever


def asked(name: str, args: Namespace) -> tuple[list[Document], list[Question]]:
    """The documents of a set, and the questions that have evidence."""
    given = collection(name, args)
    return given.documents, [question for question in given.questions if question.evidence]


def distracting(args: Namespace, room: int) -> list[Document]:
    """Documents of another kind, together as long as `room`."""
    found: list[Document] = []
    for other in read_documents(Path(args.data) / f"{DISTRACTING}.jsonl.gz"):
        if room <= 0:
            break
        found.append(Document(f"other {len(found)}", other.text[:room]))
        room -= len(found[-1].text)
    return found


def ranks(name: str, args: Namespace, encoder: Encoder) -> Rows:
    """Where the first evidence stands before and after reranking."""
    rows = []
    for retriever, found in measured(name, args, encoder).items():
        for order, places in (
            ("as found", [m.rank for m in found]),
            ("reranked", [m.reranked for m in found]),
        ):
            shares = {f"in {k} best (%)": _shown([place <= k for place in places]) for k in (1, 3, 7)}
            rows.append({"set": name, "retriever": retriever, "order": order, **shares})
    return rows


def compared(name: str, args: Namespace, encoder: Encoder, times: int = 0) -> Rows:
    """Each retriever by itself and with the default path."""
    rows = []
    for retriever, found in measured(name, args, encoder, times).items():
        for way, pairs in (
            (f"{PLAIN} best", [m.plain for m in found]),
            ("with the path", [m.path for m in found]),
        ):
            evidence, tokens = zip(*pairs, strict=True)
            row = {"set": name, "questions": len(pairs), "retriever": retriever, "sent": way}
            rows.append({**row, "evidence (%)": _shown(evidence), "tokens": _mean(tokens)})
    return rows


def distractors(name: str, args: Namespace, encoder: Encoder) -> Rows:
    """The same as the collection grows by documents of another kind."""
    return [
        {"distractors": f"{times} times", **row}
        for times in map(int, args.times.split(","))
        for row in compared(name, args, encoder, times)
    ]


PARTS: Mapping[str, tuple[str, Callable[[str, Namespace, Encoder], Rows]]] = {
    "segments": ("Segments that begin with what was cut off", segments),
    "ranks": ("Rank of the first evidence", ranks),
    "retrievers": ("Any retriever, with and without the path behind it", compared),
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


def _shown(shares: Sequence[float]) -> str:
    """The mean of shares in percent with its 95 % interval."""
    mean, low, high = with_interval(100 * np.array(shares, np.float32))
    return f"{mean:.1f} ({low:.1f}–{high:.1f})"


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
    parts = ["# Segments, ranks, retrievers and distractors", record.about(__doc__)]
    for part, rows in results.items():
        parts += [f"## {PARTS[part][0]}", table(rows)]
    return "\n\n".join(parts)


def main() -> None:
    parser = record.parse_arguments(__spec__.name, __doc__, "squad,covidqa", sample=80)
    record.add_encoder(parser)
    parser.add_argument("--retrievers", default=",".join(RETRIEVERS), help="default: all")
    parser.add_argument("--times", default="0,1,3", help="sizes of the distractors (%(default)s)")
    record.add_characters(parser, 80_000)
    parser.add_argument("--parts", default=",".join(PARTS), help="default: all")
    args = parser.parse_args()
    results = run(args, record.cached_encoder(args))
    name = "insights" if list(results) == list(PARTS) else "-".join(("insights", *results))
    record.save("papers", name, record.made(__spec__.name, args), render(results), {"results": results})


if __name__ == "__main__":
    main()
