"""Pieces cut by any splitter, with their place in the document, and plain search over them."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from precise_rag._extras import require
from precise_rag.errors import EmptyIndexError, InputError
from precise_rag.protocols import Encoder
from precise_rag.types import Candidate, Document, FloatArray, ScoreScale, Span

SearchKind = Literal["dense", "bm25", "hybrid"]

_SCALES: dict[SearchKind, ScoreScale] = {"dense": "cosine", "bm25": "bm25", "hybrid": "rank"}


class Unit(NamedTuple):
    """`text` is what is scored; `start` and `end` say what is returned for it."""

    doc_id: str
    start: int
    end: int
    text: str


def locate_pieces(document: Document, pieces: Sequence[str]) -> list[Span]:
    """Where consecutive pieces of a document stand in it; they may overlap, and may have lost or
    changed white space.

    Raises InputError for a piece whose visible characters are not in the document.
    """
    places = [place for place, letter in enumerate(document.text) if not letter.isspace()]
    compact = "".join(document.text[place] for place in places)
    spans, cursor = [], 0
    for piece in pieces:
        visible = "".join(piece.split())
        if not visible:
            continue
        start = compact.find(visible, cursor)
        if start < 0:
            raise InputError(f"{document.id}: a splitter returned text that is not in it: {piece[:60]!r}")
        spans.append(Span(places[start], places[start + len(visible) - 1] + 1))
        cursor = start + 1
    return spans


class UnitIndex:
    """Exact search over units: by vector, by BM25 (bm25s, its default terms), or both at 0.5/0.5.

    The hybrid is min-max normalised over all units. This is the plain search that splitters are
    compared under; the library's own indexes are in `precise_rag.index`.
    """

    def __init__(
        self, documents: Sequence[Document], units: Sequence[Unit], encoder: Encoder, kind: SearchKind
    ) -> None:
        if not units:
            raise EmptyIndexError("the splitter made no units; there is nothing to search")
        self._units = units
        self._texts = {document.id: document.text for document in documents}
        self._encoder = encoder
        self._kind = kind
        self._vectors = None if kind == "bm25" else encoder.encode([unit.text for unit in units])
        self._bm25 = None if kind == "dense" else _Bm25([unit.text for unit in units])

    def __len__(self) -> int:
        return len(self._units)

    def search(self, query: str, top_k: int = 10) -> list[Candidate]:
        """At most `top_k` units, best first; units with the place of a better one are left out."""
        parts: dict[str, FloatArray] = {}
        if self._vectors is not None:
            parts["dense"] = self._vectors @ self._encoder.encode_queries([query])[0]
        if self._bm25 is not None:
            parts["bm25"] = self._bm25.scores(query)
        if self._kind == "hybrid":
            halves = np.stack([_min_max(parts["dense"]), _min_max(parts["bm25"])])
            parts["hybrid"] = halves.mean(axis=0)
        scores = parts[self._kind]
        found: dict[tuple[str, int, int], Candidate] = {}
        for row in np.argsort(-scores, kind="stable"):
            if len(found) == top_k:
                break
            doc_id, start, end, _ = self._units[row]
            if (doc_id, start, end) not in found:
                found[doc_id, start, end] = Candidate(
                    doc_id,
                    start,
                    end,
                    self._texts[doc_id][start:end],
                    float(scores[row]),
                    _SCALES[self._kind],
                    scores={name: float(values[row]) for name, values in parts.items()},
                )
        return list(found.values())


class _Bm25:
    def __init__(self, texts: Sequence[str]) -> None:
        self._library = require("bm25s", extra="eval")
        self._index = self._library.BM25()
        self._index.index(self._terms(texts), show_progress=False)
        self._n = len(texts)

    def scores(self, query: str) -> FloatArray:
        known = self._terms([query])[0]
        if not known:
            return np.zeros(self._n, dtype=np.float32)
        scores: FloatArray = self._index.get_scores(known).astype(np.float32)
        return scores

    def _terms(self, texts: Sequence[str]) -> list[list[str]]:
        terms: list[list[str]] = self._library.tokenize(
            list(texts), stopwords="en", return_ids=False, show_progress=False
        )
        return terms


def _min_max(values: FloatArray) -> FloatArray:
    low, high = float(values.min()), float(values.max())
    if high <= low:
        return np.zeros_like(values)
    return ((values - low) / (high - low)).astype(np.float32)
