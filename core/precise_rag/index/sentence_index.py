"""The index of sentences: what a search returns for them, and their neighbours in the text."""

from collections.abc import Mapping, Sequence
from typing import Any

from precise_rag.filters import Filter
from precise_rag.index.candidates import limit_tokens, merge_neighbours, widen_to_passages
from precise_rag.index.document_index import DocumentIndex
from precise_rag.index.rows.neighbours import neighbour_rows
from precise_rag.index.sentence_scheme import Returns, SentenceScheme, check_returns, tokens_of_passage
from precise_rag.types import Candidate, FloatArray, Stretch


class SentenceIndex(DocumentIndex):
    """An index of sentences; each is scored together with its context."""

    scheme: SentenceScheme

    @property
    def returns(self) -> Returns:
        """Default of `returns` in `search`."""
        return self.scheme.returns

    def search(
        self,
        query: str,
        top_k: int = 10,
        *,
        filter: Filter | Mapping[str, Any] | None = None,
        vector: FloatArray | None = None,
        alpha: float | None = None,
        returns: Returns | None = None,
        merge_adjacent: bool = False,
        max_tokens: int | None = None,
    ) -> list[Candidate]:
        """Return at most `top_k` candidates, best first.

        query: the query as text.
        top_k: maximum number of candidates; at least 1.
        filter: what the documents of all candidates must meet, see `as_filter`; default: nothing.
        vector: (d,) the query's vector; default: `query` is encoded.
        alpha: weight of a sentence against its context (0 to 1); default: the index's setting.
        returns: "sentence", "passage" or "mixed", see `Returns`; default: the index's `returns`.
        merge_adjacent: join neighbouring sentences of a passage into one candidate.
        max_tokens: limit on the tokens of all candidates; one that does not fit is skipped.
        Raises EmptyIndexError if the index holds no text.
        """
        returns = check_returns(returns or self.returns)
        snapshot = self._ready(top_k, query, filter)
        if snapshot.matches_nothing:
            return []
        hits = self.scheme.find(snapshot, query, vector, top_k, alpha=alpha, returns=returns)
        candidates = snapshot.candidates(hits, self.score_scale)
        texts = {
            c.doc_id: snapshot.document(row).text
            for c, row in zip(candidates, hits.rows.tolist(), strict=True)
        }
        n_wide = {"sentence": 0, "mixed": 1, "passage": len(candidates)}[returns]
        candidates[:n_wide] = widen_to_passages(
            candidates[:n_wide],
            [texts[candidate.doc_id] for candidate in candidates[:n_wide]],
            [tokens_of_passage(snapshot, row) for row in hits.rows[:n_wide].tolist()],
        )
        if merge_adjacent:
            candidates = merge_neighbours(candidates, texts)
        return candidates if max_tokens is None else limit_tokens(candidates, max_tokens)

    def neighbours(self, sentences: Sequence[Candidate], reach: int) -> list[Stretch]:
        """Return the stretches of `sentences` with up to `reach` sentences before and after each.

        Each sentence is in one stretch; stretches of one document have a sentence between them. A candidate
        that is not a sentence of the index is left out. Nothing is encoded.
        """
        if not sentences:
            return []
        snapshot = self._ready(top_k=1)
        ranges = neighbour_rows(snapshot, sentences, reach)
        return [snapshot.stretch(first, end, self.score_scale) for first, end in ranges]
