"""What the pipeline sends with rerankers that somebody brings, against its own.

    python -m benchmarks.reranking.brought --data DIR [--vectors FILE] [--cross-encoder FOLDER]

Questions and documents that nothing was trained on. "evidence": share of the marked evidence that is sent;
"tokens": what is sent of it, on average; "gain": of evidence over the packaged path, documents redrawn in
pairs. The scores of the packaged cross-encoder stand for those of a service: as raw logits, as a probability
cubed, through a reranker of each framework, and as they are, without our levels. "BM25" orders by the words
alone. --cross-encoder: a folder of sentence-transformers, which is measured as well.
"""

from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from langchain_core.documents import BaseDocumentCompressor, Document
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore

from benchmarks import record
from benchmarks.questions import unseen
from benchmarks.sent import sent_by
from precise_rag import HybridIndex, PreciseRAG
from precise_rag.protocols import Reranker
from precise_rag.rerank import load_reranker
from precise_rag.rerank.cascade import cascade_reranker
from precise_rag.rerank.pairs import Piece
from precise_rag.types import Candidate, ScoreScale
from training.candidate_lists import cached_encoder, read_set

SETS = ("squad", "fairytaleqa", "covidqa", "hotpotqa")

_known: dict[tuple[str, str], float] = {}


def logits(query: str, texts: Sequence[str]) -> np.ndarray:
    """Return the packaged cross-encoder's (n,) logits of texts; it reads each once."""
    if new := [text for text in dict.fromkeys(texts) if (query, text) not in _known]:
        found = cascade_reranker().logits(query, list(map(Piece, new)))
        _known.update(((query, text), float(value)) for text, value in zip(new, found, strict=True))
    return np.array([_known[query, text] for text in texts])


class Service:
    """A reranker that reads every text. power: of the probability that it returns; None for logits."""

    name, score_scale = "service", "logit"

    def __init__(self, power: float | None = None, *, is_calibrated: bool = False) -> None:
        self.power, self.is_calibrated = power, is_calibrated
        self.score_scale: ScoreScale = "logit" if power is None else "probability"

    def score(self, query: str, candidates: Sequence[Candidate]) -> np.ndarray:
        found = logits(query, [candidate.text for candidate in candidates])
        return found if self.power is None else (1.0 / (1.0 + np.exp(-found))) ** self.power


class Words:
    """A reranker that orders by BM25."""

    name, score_scale = "BM25", "bm25"

    def score(self, query: str, candidates: Sequence[Candidate]) -> np.ndarray:
        return np.array([candidate.scores.get("bm25", 0.0) for candidate in candidates])


class Nodes(BaseNodePostprocessor):
    """The service as a LlamaIndex reranker."""

    def _postprocess_nodes(self, nodes: list[NodeWithScore], query_bundle: Any = None) -> list[NodeWithScore]:
        found = logits(query_bundle.query_str, [item.node.get_content() for item in nodes])
        scored = [NodeWithScore(node=n.node, score=float(s)) for n, s in zip(nodes, found, strict=True)]
        return sorted(scored, key=lambda item: -(item.score or 0.0))


class Documents(BaseDocumentCompressor):
    """The service as a LangChain reranker."""

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Any = None
    ) -> list[Document]:
        found = logits(query, [document.page_content for document in documents])
        return [documents[row] for row in np.argsort(-found, kind="stable")]


def rerankers(options: Namespace) -> Mapping[str, Reranker]:
    """The rerankers by their names in the table; the first is the packaged path's."""
    found = {
        "the packaged path": load_reranker("default"),
        "raw logits": Service(),
        "a probability cubed, as Cohere's may be": Service(3),
        "a LlamaIndex reranker": Nodes(),
        "a LangChain reranker": Documents(),
        "BM25": Words(),
        "raw logits, without our levels": Service(is_calibrated=True),
    }
    if options.cross_encoder:
        found["a cross-encoder of sentence-transformers"] = load_reranker(options.cross_encoder)
    return found


def measure(name: str, options: Namespace) -> Iterator[dict[str, Any]]:
    """Yield a row for each reranker on one set."""
    dataset = unseen(read_set(f"dev/{name}", options.data), name)
    asked = dataset.sample(options.sample, seed=options.seed).questions
    index, first = HybridIndex.build(dataset.documents, cached_encoder(options.vectors)), None
    for label, reranker in rerankers(options).items():
        sent = sent_by(PreciseRAG(index, reranker=reranker), asked)
        first = first or sent
        yield {"set": name, "questions": len(asked), "reranker": label, **sent.row(first)}


def main() -> None:
    parser = record.parse_arguments(__spec__.name, __doc__, ",".join(SETS), sample=40)
    parser.add_argument("--cross-encoder", help="folder of a cross-encoder of sentence-transformers")
    options = parser.parse_args()
    rows = record.printed(row for name in options.sets.split(",") for row in measure(name, options))
    title = "Rerankers that somebody brings"
    record.save_rows(__spec__.name, options, "reranking/brought", title, rows)


if __name__ == "__main__":
    main()
