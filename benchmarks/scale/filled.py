"""Recall of evidence at token budgets: the whole path over stock stores, against HybridIndex.

    python -m benchmarks.scale.filled --data DIR [--sets squad,cuad] [--sample 30] [--characters 300000]

The store is LangChain's for Qdrant, filled through its own methods and searched by `from_store`.
"sentences" are `weighted_sentences`, of which the store returns 100; "pieces" are those of
SemanticSegmentationTextSplitter with their vectors in context, of which it returns 20. "hybrid" is the
store's own search, with sparse vectors of stemmed words. Documents of a set are taken in seeded order up to
--characters. Nothing is selected, so every budget is filled from the ranking. Differences to HybridIndex
have 95 % intervals, paired by question, resampled by document. Sets that are measured are kept in the work
folder.
"""

import json
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import numpy as np
from langchain_core.documents import Document as Source

from benchmarks import record
from benchmarks.adoption.__main__ import held_out
from langchain_precise import PreciseEmbeddings, PreciseRetriever, SemanticSegmentationTextSplitter
from precise_rag.evaluation import BUDGETS, Positions, compare_over_sets, score_evidence
from precise_rag.evaluation.report.tables import format_markdown
from precise_rag.index import DatabaseIndex, HybridIndex, weighted_sentences
from precise_rag.index.arrays.words import split_words
from precise_rag.stems import stem
from precise_rag.types import Document

SETS = "squad,covidqa,fairytaleqa,hotpotqa,nq,qmsum,cuad"
STORES = "qdrant hybrid"
OURS = "HybridIndex"
SENTENCES = 100
"""Sentences that a store returns for a question; of pieces as many as `from_store` asks for."""


class Piece(NamedTuple):
    """What a store holds: its text, its vector and its metadata."""

    text: str
    vector: Sequence[float]
    metadata: dict[str, Any]


class GivenVectors(PreciseEmbeddings):
    """Embeddings that return the given vectors of what a store is filled with, in order."""

    vectors: Iterator[Sequence[float]] | None = None

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        if self.vectors is None:
            return super().embed_documents(texts)
        return [list(next(self.vectors)) for _ in texts]


def filled(kind: str, pieces: Sequence[Piece], encoder: Any) -> Any:
    """A store of a kind, "qdrant" or "qdrant hybrid", in memory, that holds the pieces."""
    from langchain_qdrant import QdrantVectorStore, RetrievalMode
    from qdrant_client import QdrantClient, models

    embeddings, client = GivenVectors(encoder), QdrantClient(":memory:")
    client.create_collection(
        "pieces",
        models.VectorParams(size=encoder.dimension, distance="Cosine"),
        sparse_vectors_config={"words": models.SparseVectorParams(modifier=models.Modifier.IDF)},
    )
    mode = RetrievalMode.HYBRID if kind.endswith("hybrid") else RetrievalMode.DENSE
    words = {"sparse_embedding": Words(), "sparse_vector_name": "words"}
    store = QdrantVectorStore(client, "pieces", embeddings, mode, **words)
    embeddings.vectors = iter([piece.vector for piece in pieces])
    texts, metadata = [piece.text for piece in pieces], [piece.metadata for piece in pieces]
    store.add_texts(texts, metadata, ids=[str(uuid4()) for _ in pieces])
    return store


class Words:
    """LangChain's sparse vectors: the stems of a text, with the weights of BM25 but for how rare they are."""

    def embed_documents(self, texts: Sequence[str]) -> list[Any]:
        return [self._vector(text, 1.2) for text in texts]

    def embed_query(self, text: str) -> Any:
        return self._vector(text, 0.0)

    def _vector(self, text: str, k1: float) -> Any:
        from langchain_qdrant import SparseVector

        counts = Counter(zlib.crc32(stem(word).encode()) for word in split_words(text))
        return SparseVector(indices=list(counts), values=[(1 + k1) * n / (n + k1) for n in counts.values()])


def sentences(documents: Sequence[Document], encoder: Any) -> list[Piece]:
    return [Piece(s.text, s.vector.tolist(), s.metadata) for s in weighted_sentences(documents, encoder)]


def pieces(documents: Sequence[Document], encoder: Any, **options: Any) -> list[Piece]:
    splitter = SemanticSegmentationTextSplitter(embeddings=encoder, **options)
    cut = splitter.split_documents([Source(d.text, id=d.id, metadata=dict(d.metadata)) for d in documents])
    vectors = splitter.embeddings.embed_documents([piece.page_content for piece in cut])
    return [Piece(c.page_content, v, c.metadata) for c, v in zip(cut, vectors, strict=True)]


CONTENTS: dict[str, tuple[Callable[..., list[Piece]], int]] = {
    "sentences": (sentences, SENTENCES),
    "pieces": (pieces, 20),
}
"""What the stores hold, and how many of these are fetched for a question."""


def main() -> None:
    parser = record.parse_arguments(__spec__.name, __doc__, SETS, sample=30)
    parser.add_argument("--characters", type=int, default=300_000, help="of a set's documents (%(default)s)")
    parser.add_argument("--stores", default=STORES, help="default: %(default)s")
    parser.add_argument("--databases", default="", help="locations of DatabaseIndex to compare, too")
    args = parser.parse_args()
    names = args.sets.split(",")
    encoder = record.cached_encoder(args)
    for name in names:
        if not kept_in(args, name).exists():
            kept_in(args, name).write_text(json.dumps(measure(name, encoder, args)))
    save(args, {name: json.loads(kept_in(args, name).read_text()) for name in names})


def kept_in(args: Any, name: str) -> Path:
    """Where the figures of a set are kept, so that sets can be measured one after another."""
    return args.work / f"filled-{name}-{args.sample}-{args.characters}-{args.seed}.json"


def measure(name: str, encoder: Any, args: Any) -> dict[str, Any]:
    """The recalls (%) of each system, question by question, and the groups of the questions."""
    documents, questions = held_out(name, args)
    corpus = Positions(documents)
    recall = {}
    for system, retriever in systems(documents, encoder, args):
        found = [retriever.select(question.text).kept for question in questions]
        scored = [score_evidence(corpus, kept, q.evidence) for kept, q in zip(found, questions, strict=True)]
        recall[system] = [[100 * float(share) for share in score.recall] for score in scored]
        print(name, len(documents), system, np.mean(recall[system], axis=0).round(1), flush=True)
    return {"groups": [question.group for question in questions], "recall": recall}


def systems(documents: Sequence[Document], encoder: Any, args: Any) -> Iterator[tuple[str, PreciseRetriever]]:
    """The name and the retriever of each system, over its own index of the documents."""
    yield OURS, PreciseRetriever.from_index(HybridIndex.build(documents, encoder), selector=None)
    for location in filter(None, args.databases.split(",")):
        index = DatabaseIndex.build(documents, encoder, location=location)
        name = location.partition(":")[0]
        yield f"DatabaseIndex, {name}", PreciseRetriever.from_index(index, selector=None)
        index.close()
    for content, (make, fetch_k) in CONTENTS.items():
        held = make(documents, encoder)
        for kind in args.stores.split(","):
            store = filled(kind, held, encoder)
            yield f"{kind}, {content}", PreciseRetriever.from_store(store, fetch_k=fetch_k, selector=None)


def save(args: Any, measured: dict[str, dict[str, Any]]) -> None:
    """Save the means over the sets, and the differences to the first system."""
    recall = {name: {s: np.array(v) for s, v in one["recall"].items()} for name, one in measured.items()}
    rows = []
    for system in next(iter(recall.values())):
        cells = [system]
        for column in range(len(BUDGETS)):
            pairs = [
                (recall[name][system][:, column], recall[name][OURS][:, column], one["groups"])
                for name, one in measured.items()
            ]
            gain = compare_over_sets(pairs).difference
            difference = f" ({gain.mean:+.1f} [{gain.low:+.1f}, {gain.high:+.1f}])" if system != OURS else ""
            cells.append(f"{np.mean([values.mean() for values, _, _ in pairs]):.1f}{difference}")
        rows.append(cells)
    counts = {name: len(one["groups"]) for name, one in measured.items()}
    table = format_markdown(["", *(f"{budget:,}" for budget in BUDGETS)], rows)
    title = f"# The whole path over stock stores: recall of evidence (%), mean of {len(counts)} sets"
    about = "Questions: " + ", ".join(f"{name} {count}" for name, count in counts.items()) + "."
    means = {
        name: {s: v.mean(axis=0).round(2).tolist() for s, v in one.items()} for name, one in recall.items()
    }
    made = record.made(__spec__.name, args)
    record.save("scale", "filled", made, f"{title}\n\n{about}\n\n{table}", {"recall": means})


if __name__ == "__main__":
    main()
