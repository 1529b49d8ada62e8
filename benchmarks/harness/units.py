"""What any splitter makes of a document, and plain search over it, so that splitters can be compared."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from precise_rag.index.ranking import scaled
from precise_rag.protocols import Encoder
from precise_rag.types import Candidate, Document, FloatArray, ScoreScale, Span


class Unit(NamedTuple):
    """A stretch of a document that a splitter made and an index can find.

    text: the text to score. start, end: offsets of the span to return for it. The span may hold more than
    `text` (a sentence window) and differ from it in white space, which is why a unit is not a Chunk.
    """

    doc_id: str
    start: int
    end: int
    text: str


Splitter = Callable[[Document], list[Unit]]
"""Splits a document into units, in order."""

_SCALES: dict[str, ScoreScale] = {"dense": "cosine", "bm25": "bm25", "hybrid": "rank"}


def units_of(document: Document, spans: Sequence[tuple[int, int]]) -> list[Unit]:
    """Return a unit for each span of a document that has text."""
    units = (Unit(document.id, start, end, document.text[start:end].strip()) for start, end in spans)
    return [unit for unit in units if unit.text]


def from_texts(split_text: Callable[[str], Sequence[str]]) -> Splitter:
    """Return a splitter into the texts that a function cuts a text into."""
    return lambda document: units_of(document, locate_texts(document, split_text(document.text)))


def locate_texts(document: Document, texts: Sequence[str]) -> list[Span]:
    """Return the spans of consecutive texts cut from a document.

    The texts may overlap and may differ from the document in white space; blank ones are skipped.
    Raises ValueError for a text whose visible characters are not in the document.
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
            raise ValueError(f"{document.id}: a splitter returned text that is not in it: {text[:60]!r}")
        spans.append(Span(places[start], places[start + len(visible) - 1] + 1))
        cursor = start + 1
    return spans


class UnitIndex:
    """Exact search over units.

    kind: "dense" (inner product of vectors), "bm25" (bm25s with its default terms), or "hybrid" (the
    mean of both, each min-max normalised over all units).
    """

    def __init__(
        self, documents: Sequence[Document], units: Sequence[Unit], encoder: Encoder, kind: str = "dense"
    ) -> None:
        self._units = units
        self._texts = {document.id: document.text for document in documents}
        self._encoder = encoder
        self._kind = kind
        texts = [unit.text for unit in units]
        self._vectors = None if kind == "bm25" else encoder.encode(texts)
        self._bm25 = None if kind == "dense" else _bm25(texts)

    def search(self, query: str, top_k: int = 10) -> list[Candidate]:
        """Return at most `top_k` units, best first; of units with the same span, only the best."""
        parts: dict[str, FloatArray] = {}
        if self._vectors is not None:
            parts["dense"] = self._vectors @ self._encoder.encode_queries([query])[0]
        if self._bm25 is not None:
            parts["bm25"] = self._bm25(query)
        scores = np.mean([scaled(part) for part in parts.values()], axis=0)
        if self._kind != "hybrid":
            scores = parts[self._kind]
        best: dict[tuple[str, int, int], Candidate] = {}
        for row in np.argsort(-scores, kind="stable"):
            doc_id, start, end, _ = self._units[row]
            text, score = self._texts[doc_id][start:end], float(scores[row])
            found = Candidate(doc_id, start, end, text, score, _SCALES[self._kind])
            best.setdefault((doc_id, start, end), found)
            if len(best) == top_k:
                break
        return list(best.values())


def _bm25(texts: Sequence[str]) -> Callable[[str], FloatArray]:
    import bm25s

    def terms(given: Sequence[str]) -> Any:
        return bm25s.tokenize(list(given), stopwords="en", return_ids=False, show_progress=False)

    index = bm25s.BM25()
    index.index(terms(texts), show_progress=False)

    def scores(query: str) -> FloatArray:
        known = terms([query])[0]
        found: FloatArray = index.get_scores(known) if known else np.zeros(len(texts))
        return found.astype(np.float32)

    return scores
