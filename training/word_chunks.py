"""Chunks ranked by BM25, for lists of candidates that have no other score."""

from collections.abc import Mapping, Sequence
from typing import Any

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

    encoder: counts tokens; None counts words. chunks: how sentences are grouped.
    """

    def __init__(self, documents: Sequence[Document], encoder: Encoder | None, chunks: Passages) -> None:
        with_text = [document for document in documents if document.text.strip()]
        tables = build_tables(with_text, encoder, vectors=False)
        self._chunks: list[tuple[Document, str, int, int]] = []
        for document, table in zip(with_text, tables, strict=True):
            groups = Groups.by_change(passage_ids(document, table, chunks))
            for start, end in groups.spans(trim_spans(document.text, table.spans)).tolist():
                self._chunks.append((document, document.text[start:end], start, end))
        self._bm25 = bm25s.BM25()
        self._bm25.index([_words(text) for _, text, _, _ in self._chunks], show_progress=False)

    def search(
        self, query: str, top_k: int = 10, *, filter: Mapping[str, Any] | None = None
    ) -> list[Candidate]:
        """Return at most `top_k` candidates, best first; filter: values that their metadata have."""
        words = _words(query)
        scores = self._bm25.get_scores(words) if words else np.zeros(len(self._chunks))
        wanted = (filter or {}).items()
        found: list[Candidate] = []
        for row in np.argsort(-scores, kind="stable"):
            document, text, start, end = self._chunks[row]
            if len(found) == top_k or scores[row] <= 0:
                break
            if all(document.metadata.get(name) == value for name, value in wanted):
                score = float(scores[row])
                found.append(
                    Candidate(
                        document.id,
                        start,
                        end,
                        text,
                        score,
                        "bm25",
                        scores={"bm25": score},
                        metadata=document.metadata,
                    )
                )
        return found


def _words(text: str) -> list[str]:
    return [word for word in split_words(text) if word not in _STOP_WORDS]
