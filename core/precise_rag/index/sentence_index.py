"""The index in memory of sentences that are scored together with their context."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from typing_extensions import override

from precise_rag.index.context import check_alpha
from precise_rag.index.groups import Groups, passage_ids
from precise_rag.index.index import DocumentIndex
from precise_rag.index.ranking import top_rows
from precise_rag.index.search import Returns, SentenceQuery, SentenceSearch, merge_neighbours
from precise_rag.index.table import Part
from precise_rag.index.vectors import vector_columns
from precise_rag.index.view import Hits, View
from precise_rag.sentences.words import trim_spans
from precise_rag.types import Candidate, Document, FloatArray, SentenceTable, Stretch


class SentenceIndex(SentenceSearch, DocumentIndex):
    """An index of sentences; each is scored together with its context.

    Its settings are `VectorSettings` with `alpha` and `passages`; a prepared block has `passages`, the groups
    of its rows.
    """

    @abstractmethod
    def _scores(
        self, view: View, query: str, vector: FloatArray, alpha: float
    ) -> tuple[FloatArray, Mapping[str, FloatArray]]:
        """(n,) scores of all sentences, -inf for those to leave out; and the scores behind them, by name.

        Left out is at least what `View.matching` says. vector: (d,) the query's, of unit length.
        alpha: weight of a sentence against its context.
        """

    @override
    def _best(
        self,
        view: View,
        query: str,
        direction: FloatArray,
        top_k: int,
        alpha: float | None = None,
        returns: Returns = "sentence",
    ) -> Hits:
        """Return the best rows for a query; of a passage, the row of its best sentence is returned."""
        weight: float = self.settings.alpha if alpha is None else check_alpha(alpha)
        scores, parts = self._scores(view, query, direction, weight)
        if returns == "sentence":
            rows = top_rows(scores, top_k)
        elif returns == "passage":
            best = np.concatenate(
                [
                    own.start + part.prepared.passages.best_rows(scores[own], top_k)
                    for part, own in view.slices()
                ]
            )
            rows = best[top_rows(scores[best], top_k)]
        else:
            best_row = int(np.argmax(scores))
            _, first, end = _passage_of(view, best_row)
            first, end = (place + view.part_of(best_row)[1] for place in (first, end))
            others = top_rows(scores, top_k - 1 + end - first)
            rows = np.append(best_row, others[(others < first) | (others >= end)])[:top_k]
        return Hits.of(rows, scores, parts)

    @override
    def _find(self, asked: SentenceQuery) -> list[Candidate]:
        view = self._ready(asked.filter)
        if view.matches_nothing:
            return []
        direction = self._direction(view, asked.text, asked.vector)
        hits = self._best(view, asked.text, direction, asked.top_k, asked.alpha, asked.returns)
        candidates = self._candidates(view, hits, direction)
        rows = hits.rows.tolist()
        texts = {c.doc_id: view.document(row).text for c, row in zip(candidates, rows, strict=True)}
        n_wide = {"sentence": 0, "mixed": 1, "passage": len(candidates)}[asked.returns]
        for place in range(n_wide):
            candidates[place] = _widened(candidates[place], view, rows[place])
        return merge_neighbours(candidates, texts) if asked.merge_adjacent else candidates

    def neighbours(self, sentences: Sequence[Candidate], reach: int) -> list[Stretch]:
        """Return the stretches of `sentences` with up to `reach` sentences before and after each.

        Each sentence is in one stretch; stretches of one document have a sentence between them. A candidate
        that is not a sentence of the index is left out. Nothing is encoded.
        """
        return self._ready().stretches(sentences, reach, self.score_scale) if sentences else []


def sentence_columns(document: Document, table: SentenceTable, settings: Any) -> dict[str, Any]:
    """A row of each sentence of one document, with its vector and the span of its passage."""
    spans = trim_spans(document.text, table.spans)
    assert table.vectors is not None
    passages = Groups.by_change(passage_ids(document, table, settings.passages))
    return {
        "spans": spans,
        "n_tokens": table.n_tokens,
        **vector_columns(table.vectors, settings.precision),
        "passage_spans": passages.spans(spans)[passages.of_row],
    }


def _widened(sentence: Candidate, view: View, row: int) -> Candidate:
    """A sentence with the text of its whole passage; row: of the sentence."""
    part, first, behind = _passage_of(view, row)
    start, end = sentence.passage or (sentence.start, sentence.end)
    text = view.document(row).text[start:end]
    n_tokens = int(part.block.columns["n_tokens"][first:behind].sum())
    return replace(sentence, start=start, end=end, text=text, n_tokens=n_tokens)


def _passage_of(view: View, row: int) -> tuple[Part, int, int]:
    """The part that a row is in; the first row of its passage and the one behind the last, in the part."""
    part, offset = view.part_of(row)
    passages: Groups = part.prepared.passages
    return part, *passages.rows(int(passages.of_row[row - offset]))
