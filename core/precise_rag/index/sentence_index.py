"""The search of sentences that are scored together with their context, and the index of them in memory."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple, Never, get_args

import numpy as np
from typing_extensions import override

from precise_rag.checks import check_choice, check_number
from precise_rag.filters import Filter, as_filter
from precise_rag.index.groups import Groups, passage_ids
from precise_rag.index.index import DocumentIndex, Searched, check_search
from precise_rag.index.ranking import Draws, best_rows
from precise_rag.index.vectors import vector_columns
from precise_rag.index.view import Hits, View
from precise_rag.sentences.trimming import trim_spans
from precise_rag.types import Candidate, Document, FloatArray, IntArray, SentenceTable, Span, Stretch

Returns = Literal["sentence", "passage", "mixed"]
"""What a search returns for a scored sentence: the "sentence"; the "passage" around it, with the score of its
best sentence; or "mixed": the passage for the best sentence, and single sentences after it."""
Scores = tuple[FloatArray, Mapping[str, FloatArray]]


def chosen_rows(
    scores: FloatArray, passages: IntArray, returns: Returns, top_k: int, drawn: Draws
) -> IntArray:
    """The rows of at most `top_k` sentences to return, best first; see `Returns`.

    scores: (n,) of all sentences, -inf for those to leave out. passages: (n,) number of the passage of each.
    """
    if returns == "passage":
        n_found = max(1, int(np.count_nonzero(scores > -np.inf)))
        rows = best_rows(scores, n_found, drawn)
        rows = rows[np.sort(np.unique(passages[rows], return_index=True)[1])[:top_k]]
        return rows[scores[rows] > -np.inf]
    if returns == "mixed":
        best = best_rows(scores, 1, drawn)
        scores = np.where(passages == passages[best], -np.inf, scores)
        scores[best] = np.inf
    rows = best_rows(scores, top_k, drawn)
    return rows[scores[rows] > -np.inf]


class SentenceQuery(NamedTuple):
    """The checked arguments of a search; see `SentenceSearch.search`."""

    text: str
    top_k: int
    filter: Filter | None
    vector: FloatArray | None
    alpha: float | None
    returns: Returns


class SentenceSearch(Searched):
    """An index of sentences that can be searched, in memory or in a database."""

    @abstractmethod
    def _find(self, asked: SentenceQuery) -> list[Candidate]:
        """The candidates of a search, best first."""

    def search(
        self,
        query: str,
        top_k: int = 10,
        *,
        filter: Filter | Mapping[str, Any] | None = None,
        vector: FloatArray | None = None,
        alpha: float | None = None,
        returns: Returns | None = None,
        **others: Never,
    ) -> list[Candidate]:
        """Return at most `top_k` candidates, best first.

        query, top_k: the question, and the maximum number of candidates, at least 1.
        filter: what the documents of all candidates must meet, see `as_filter`; default: nothing.
        vector: (d,) the query's vector, by the same model as those of the index; default: `query` is encoded.
        alpha: weight of a sentence against its context (0 to 1); default: the index's setting. The vectors
            in a database are weighted by it, so there only that one is allowed.
        returns: "sentence", "passage" or "mixed", see `Returns`; default: the index's `returns`.
        Raises EmptyIndexError if the index holds no text.
        """
        check_search(query, top_k, others, "filter", "vector", "alpha", "returns")
        check_number("alpha", alpha, least=0, most=1, none="the index's setting")
        default: Returns = getattr(self.settings, "returns", "sentence")
        returns = returns or default
        check_choice("returns", returns, get_args(Returns))
        wanted = None if filter is None else as_filter(filter)
        return self._find(SentenceQuery(query, top_k, wanted, vector, alpha, returns))

    @abstractmethod
    def neighbours(self, sentences: Sequence[Candidate], reach: int) -> list[Stretch]:
        """Return the sentences around some, see `Neighbours`. Nothing is encoded."""


class SentenceIndex(SentenceSearch, DocumentIndex):
    """An index of sentences; each is scored together with its context.

    Its settings are `VectorSettings` with `alpha` and `passages`; a prepared shard has `passages`, the groups
    of its rows.
    """

    @abstractmethod
    def _scores(self, view: View, query: str, vector: FloatArray, alpha: float, top_k: int) -> Scores:
        """(n,) scores of all sentences, -inf for those to leave out; and the scores behind them, by name.

        Left out is at least what `View.matching` says. vector: (d,) the query's, of unit length.
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
        weight = self.settings.alpha if alpha is None else alpha
        scores, parts = self._scores(view, query, direction, weight, top_k)
        passages = [part.prepared.passages.of_row + rows.start for part, rows in view.slices()]
        rows = chosen_rows(scores, np.concatenate(passages), returns, top_k, view.draws)
        return Hits(rows, scores[rows], {name: values[rows] for name, values in parts.items()})

    @override
    def _find(self, asked: SentenceQuery) -> list[Candidate]:
        view = self._ready(asked.filter)
        rows, candidates = self._found(
            view, asked.text, asked.vector, asked.top_k, alpha=asked.alpha, returns=asked.returns
        )
        n_wide = {"sentence": 0, "mixed": 1, "passage": len(candidates)}[asked.returns]
        for place, row in enumerate(rows[:n_wide]):
            candidates[place] = _widened(candidates[place], view, row)
        return candidates

    @override
    def neighbours(self, sentences: Sequence[Candidate], reach: int) -> list[Stretch]:
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
    part, offset = view.part_of(row)
    passages: Groups = part.prepared.passages
    number = passages.of_row[row - offset]
    n_tokens = int(part.shard.columns["n_tokens"][passages.starts[number] : passages.ends[number]].sum())
    passage = sentence.passage or Span(sentence.start, sentence.end)
    text = view.document(row).text[passage.start : passage.end]
    return replace(sentence, start=passage.start, end=passage.end, text=text, n_tokens=n_tokens)
