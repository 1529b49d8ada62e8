"""Hits@k, MRR@k and nDCG@k of ranked passages, computed by ir-measures (extra `eval`).

The ranked items are passages (paragraphs between blank lines) or whole documents, not the units of a
pipeline. Pipelines that cut the text differently are then measured on the same items.
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
"""Default ranks k."""

_BLANK_LINE = re.compile(r"\n\s*\n")


def ranking_scores(
    relevant: Mapping[str, Iterable[str]],
    ranked: Mapping[str, Sequence[str]],
    cutoffs: Sequence[int] = CUTOFFS,
) -> dict[str, Values]:
    """Compute Hits@k, MRR@k and nDCG@k of every question.

    relevant: the ids of the relevant items of each question.
    ranked: the ids of the ranked items of each question, best first; a missing question scores 0.
    cutoffs: the ranks k.

    Returns names such as "Hits@1" to (n_questions,) values, in the order of `relevant`. Raises
    MissingExtra without ir-measures.
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
        for measured in measures.iter_calc(list(names), qrels, run):
            values[names[measured.measure]][rows[measured.query_id]] = measured.value
    return values


class RankedPassages:
    """The passages of a collection as items to rank, found by the spans that touch them.

    positions: the collection.
    level: "passage" (default: paragraphs between blank lines) or "document" (whole documents).
    """

    def __init__(self, positions: Positions, level: Literal["passage", "document"] = "passage") -> None:
        self._positions = positions
        passages = [
            Chunk(document.id, start, end, "")
            for document in positions.documents.values()
            for start, end in (
                _paragraphs(document.text) if level == "passage" else [(0, len(document.text))]
            )
        ]
        places = positions.locate(passages)
        visible = places[:, 0] < places[:, 1]
        self._places = places[visible]
        self._ids = [passage.id for passage, keep in zip(passages, visible, strict=True) if keep]

    def ids(self, spans: Sequence[Located]) -> list[str]:
        """Return the ids of the passages that the spans touch, each once.

        Ordered by the first span that touches a passage, then as in the document.
        """
        ranked: dict[str, None] = {}
        for first, last in self._range(self._positions.locate(spans)):
            ranked.update(dict.fromkeys(self._ids[first:last]))
        return list(ranked)

    def _range(self, places: IntArray) -> IntArray:
        places = places[places[:, 0] < places[:, 1]]
        first = np.searchsorted(self._places[:, 1], places[:, 0], side="right")
        last = np.searchsorted(self._places[:, 0], places[:, 1], side="left")
        return np.column_stack((first, last))


def _paragraphs(text: str) -> list[tuple[int, int]]:
    ends = [match.end() for match in _BLANK_LINE.finditer(text)]
    return list(zip([0, *ends], [*ends, len(text)], strict=True))
