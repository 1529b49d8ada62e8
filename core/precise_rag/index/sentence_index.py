"""The index of sentences: what a search returns for them, and their neighbours in the text."""

from collections.abc import Sequence

from typing_extensions import override

from precise_rag.index.candidates import merge_neighbours, widen_to_passages
from precise_rag.index.document_index import DocumentIndex
from precise_rag.index.rows.neighbours import neighbour_rows
from precise_rag.index.sentence_scheme import Returns, SentenceScheme, tokens_of_passage
from precise_rag.index.sentence_search import SentenceQuery, SentenceSearch
from precise_rag.types import Candidate, Stretch


class SentenceIndex(SentenceSearch, DocumentIndex):
    """An index of sentences; each is scored together with its context."""

    scheme: SentenceScheme

    @property
    @override
    def returns(self) -> Returns:
        return self.scheme.returns

    @override
    def _find(self, asked: SentenceQuery) -> list[Candidate]:
        snapshot = self._ready(asked.filter)
        if snapshot.matches_nothing:
            return []
        hits = self.scheme.find(
            snapshot, asked.text, asked.vector, asked.top_k, alpha=asked.alpha, returns=asked.returns
        )
        candidates = snapshot.candidates(hits, self.score_scale)
        texts = {
            c.doc_id: snapshot.document(row).text
            for c, row in zip(candidates, hits.rows.tolist(), strict=True)
        }
        n_wide = {"sentence": 0, "mixed": 1, "passage": len(candidates)}[asked.returns]
        candidates[:n_wide] = widen_to_passages(
            candidates[:n_wide],
            [texts[candidate.doc_id] for candidate in candidates[:n_wide]],
            [tokens_of_passage(snapshot, row) for row in hits.rows[:n_wide].tolist()],
        )
        return merge_neighbours(candidates, texts) if asked.merge_adjacent else candidates

    def neighbours(self, sentences: Sequence[Candidate], reach: int) -> list[Stretch]:
        """Return the stretches of `sentences` with up to `reach` sentences before and after each.

        Each sentence is in one stretch; stretches of one document have a sentence between them. A candidate
        that is not a sentence of the index is left out. Nothing is encoded.
        """
        if not sentences:
            return []
        snapshot = self._ready()
        ranges = neighbour_rows(snapshot, sentences, reach)
        return [snapshot.stretch(first, end, self.score_scale) for first, end in ranges]
