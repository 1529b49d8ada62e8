"""Hits@k, MRR@k and nDCG@k, computed by ir-measures (extra `eval`).

What is ranked is passages (paragraphs between blank lines) or documents rather than a pipeline's
own units, so that pipelines which cut the text differently are judged by the same list.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import numpy as np

from precise_rag._extras import require
from precise_rag.evaluation.measures.evidence import Values
from precise_rag.evaluation.measures.positions import Located, Positions
from precise_rag.types import Chunk, IntArray

CUTOFFS = (1, 3, 10)
"""Ranks at which rankings are compared."""

_BLANK_LINE = re.compile(r"\n\s*\n")


def ranking_scores(
    relevant: Mapping[str, Iterable[str]],
    ranked: Mapping[str, Sequence[str]],
    cutoffs: Sequence[int] = CUTOFFS,
) -> dict[str, Values]:
    """`{"Hits@k" | "MRR@k" | "nDCG@k": one value per question}`, questions in `relevant`'s order.

    relevant: each question's relevant item ids. ranked: each question's item ids, best first; a
    question without any scores 0. Raises MissingExtra without ir-measures.
    """
    measures = require("ir_measures", extra="eval")
    names = {
        measure @ k: f"{name}@{k}"
        for name, measure in (("Hits", measures.Success), ("MRR", measures.RR), ("nDCG", measures.nDCG))
        for k in cutoffs
    }
    qrels = [measures.Qrel(query, item, 1) for query, items in relevant.items() for item in items]
    run = [
        measures.ScoredDoc(query, item, -float(rank))
        for query in relevant
        for rank, item in enumerate(ranked.get(query, ()))
    ]
    rows = {query: row for row, query in enumerate(relevant)}
    values = {name: np.zeros(len(rows)) for name in names.values()}
    if run and qrels:
        for found in measures.iter_calc(list(names), qrels, run):
            values[names[found.measure]][rows[found.query_id]] = found.value
    return values


class RankedPassages:
    """The documents' passages, or the documents themselves, as items to be ranked."""

    def __init__(self, corpus: Positions, level: Literal["passage", "document"] = "passage") -> None:
        self._corpus = corpus
        pieces = [
            Chunk(document.id, start, end, "")
            for document in corpus.documents.values()
            for start, end in (
                _paragraphs(document.text) if level == "passage" else [(0, len(document.text))]
            )
        ]
        places = corpus.locate(pieces)
        visible = places[:, 0] < places[:, 1]
        self._places = places[visible]
        self._ids = [piece.id for piece, keep in zip(pieces, visible, strict=True) if keep]

    def ids(self, pieces: Sequence[Located]) -> list[str]:
        """The passages that the pieces touch: in the pieces' order, then in reading order, each once."""
        found: dict[str, None] = {}
        for first, last in self._range(self._corpus.locate(pieces)):
            found.update(dict.fromkeys(self._ids[first:last]))
        return list(found)

    def _range(self, places: IntArray) -> IntArray:
        places = places[places[:, 0] < places[:, 1]]
        first = np.searchsorted(self._places[:, 1], places[:, 0], side="right")
        last = np.searchsorted(self._places[:, 0], places[:, 1], side="left")
        return np.column_stack((first, last))


def _paragraphs(text: str) -> list[tuple[int, int]]:
    ends = [match.end() for match in _BLANK_LINE.finditer(text)]
    return list(zip([0, *ends], [*ends, len(text)], strict=True))
