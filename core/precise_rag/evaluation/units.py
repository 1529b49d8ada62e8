"""Text units from any splitter, their places in the document, and plain search over them."""

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from precise_rag._extras import require
from precise_rag.errors import EmptyIndexError, InputError
from precise_rag.index.arrays.fusion import min_max
from precise_rag.protocols import Encoder
from precise_rag.types import Candidate, Document, FloatArray, ScoreScale, Span

SearchKind = Literal["dense", "bm25", "hybrid"]
"""The plain searches of `UnitIndex`."""

_SCALES: dict[SearchKind, ScoreScale] = {"dense": "cosine", "bm25": "bm25", "hybrid": "rank"}


SEARCHES: dict[str, Callable[..., Any]] = {}
"""Searches of your own by their name in a plan: each makes an index from documents, units and an encoder."""

MODEL_SEARCHES: dict[str, Callable[..., Any]] = {}
"""The same for searches that ask a language model, which comes as a fourth argument."""


class Unit(NamedTuple):
    """A stretch of a document that a splitter made and an index can find.

    text: the text to score. start, end: offsets of the span to return for it. The span may hold more than
    `text` (a sentence window) and differ from it in white space, which is why a unit is not a Chunk.
    """

    doc_id: str
    start: int
    end: int
    text: str


def locate_texts(document: Document, texts: Sequence[str]) -> list[Span]:
    """Return the spans of consecutive texts cut from a document.

    The texts may overlap and may differ from the document in white space; blank ones are skipped.
    Raises InputError for a text whose visible characters are not in the document.
    """
    places = [place for place, letter in enumerate(document.text) if not letter.isspace()]
    compact = "".join(document.text[place] for place in places)
    spans, cursor = [], 0
    for text in texts:
        visible = "".join(text.split())
        if not visible:
            continue
        start = compact.find(visible, cursor)
        if start < 0:
            raise InputError(f"{document.id}: a splitter returned text that is not in it: {text[:60]!r}")
        spans.append(Span(places[start], places[start + len(visible) - 1] + 1))
        cursor = start + 1
    return spans


class UnitIndex:
    """Exact search over units, for comparing splitters under the same plain search.

    kind: "dense" (inner product of vectors), "bm25" (bm25s with its default terms), or "hybrid" (the
        mean of both, each min-max normalised over all units).

    This library's own indexes are in `precise_rag.index`. Raises EmptyIndexError without units.
    """

    def __init__(
        self, documents: Sequence[Document], units: Sequence[Unit], encoder: Encoder, kind: SearchKind
    ) -> None:
        if not units:
            raise EmptyIndexError(
                "the splitter returned no units, so there is nothing to search; "
                "check that the documents have text"
            )
        self._units = units
        self._texts = {document.id: document.text for document in documents}
        self._encoder = encoder
        self._kind = kind
        self._vectors = None if kind == "bm25" else encoder.encode([unit.text for unit in units])
        self._bm25 = None if kind == "dense" else _Bm25([unit.text for unit in units])

    def __len__(self) -> int:
        return len(self._units)

    def search(self, query: str, top_k: int = 10) -> list[Candidate]:
        """Return at most `top_k` units, best first; of units with the same span, only the best."""
        parts: dict[str, FloatArray] = {}
        if self._vectors is not None:
            parts["dense"] = self._vectors @ self._encoder.encode_queries([query])[0]
        if self._bm25 is not None:
            parts["bm25"] = self._bm25.scores(query)
        if self._kind == "hybrid":
            halves = np.stack([min_max(parts["dense"]), min_max(parts["bm25"])])
            parts["hybrid"] = halves.mean(axis=0)
        scores = parts[self._kind]
        best: dict[tuple[str, int, int], Candidate] = {}
        for row in np.argsort(-scores, kind="stable"):
            if len(best) == top_k:
                break
            doc_id, start, end, _ = self._units[row]
            if (doc_id, start, end) not in best:
                best[doc_id, start, end] = Candidate(
                    doc_id,
                    start,
                    end,
                    self._texts[doc_id][start:end],
                    float(scores[row]),
                    _SCALES[self._kind],
                    scores={name: float(values[row]) for name, values in parts.items()},
                )
        return list(best.values())


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
