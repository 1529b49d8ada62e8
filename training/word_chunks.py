"""Chunks ranked by BM25, for lists of candidates that have no other score."""

from collections.abc import Sequence
from dataclasses import replace

import bm25s
import numpy as np

from precise_rag.index.groups import Groups, Passages, passage_ids
from precise_rag.index.words import load_stop_words, split_words
from precise_rag.protocols import Encoder
from precise_rag.sentences.tables import build_tables
from precise_rag.sentences.words import trim_spans
from precise_rag.types import Candidate, Document

_STOP_WORDS = load_stop_words("english")


class WordChunks:
    """Searches chunks by Okapi BM25; chunks without a word of the query are not found.

    encoder: counts tokens; None counts words. chunks: how sentences are grouped; then, all of them.
    """

    def __init__(self, documents: Sequence[Document], encoder: Encoder | None, chunks: Passages) -> None:
        with_text = [document for document in documents if document.text.strip()]
        tables = build_tables(with_text, encoder, vectors=False)
        self.chunks: list[Candidate] = []
        for document, table in zip(with_text, tables, strict=True):
            groups = Groups.by_change(passage_ids(document, table, chunks))
            for start, end in groups.spans(trim_spans(document.text, table.spans)).tolist():
                text, metadata = document.text[start:end], document.metadata
                self.chunks.append(Candidate(document.id, start, end, text, 0.0, "bm25", metadata=metadata))
        self._bm25 = bm25s.BM25()
        self._bm25.index([_words(chunk.text) for chunk in self.chunks], show_progress=False)

    def search(self, query: str, top_k: int = 10) -> list[Candidate]:
        """Return at most `top_k` candidates, best first."""
        scores = self.scores(query)
        best = [row for row in np.argsort(-scores, kind="stable")[:top_k] if scores[row] > 0]
        found = ((self.chunks[row], float(scores[row])) for row in best)
        return [replace(chunk, score=score, scores={"bm25": score}) for chunk, score in found]

    def scores(self, query: str) -> np.ndarray:
        """Return the (n,) scores of all chunks; 0 without a word of the query."""
        words = _words(query)
        return self._bm25.get_scores(words) if words else np.zeros(len(self.chunks))


def _words(text: str) -> list[str]:
    return [word for word in split_words(text) if word not in _STOP_WORDS]
