"""Evidence in texts that anything retrieved: their relevant sentences, grown to spans."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from precise_rag.checks import items_of
from precise_rag.evidence.grower import EvidenceGrower
from precise_rag.evidence.texts import FoundTexts
from precise_rag.excerpts import PLAIN, Form, excerpts_of, within
from precise_rag.rerank import calibrated, load_reranker, rerank
from precise_rag.selection import ProbabilitySelector
from precise_rag.sharing import share_places
from precise_rag.types import Candidate, Selection, check_query

N_FOUND = 200
"""Sentences that count as found: those that the reranker puts first, shared among the documents."""
FROM_TEXTS = ProbabilitySelector(share_of_best=0.005, min_score=0.0005, enough_tokens=2000, enough_share=0.5)
"""Keeps more than others do: a retriever has found the texts good, and no search has chosen the sentences."""


class EvidenceExtractor:
    """Cuts retrieved texts down to the evidence in them.

    All sentences of the texts are reranked together. The best N_FOUND grow to their neighbours in the
    same text, see `EvidenceGrower`, and the selector decides what is sent, as excerpts; see `excerpts_of`.
    A sentence that is in several texts is kept once.

    reranker: scores the sentences; anything that `load_reranker` takes.
    selector: default: `FROM_TEXTS`. With min_keep=0 nothing is kept if nothing is relevant.
    """

    def __init__(self, reranker: Any = "default", selector: ProbabilitySelector | None = None) -> None:
        self.reranker = calibrated(load_reranker(reranker))
        self.selector = selector or FROM_TEXTS

    def extract(self, query: str, texts: Sequence[Candidate], form: Form = PLAIN) -> Selection:
        """Return the decisions: the evidence as excerpts, kept in their order, then the sentences dropped.

        query: not blank.
        texts: of any length, each with the scores that its retriever gave, if any.
        form: as for `within`.
        """
        check_query(query)
        found_texts = FoundTexts(query, [*items_of("texts", texts, Candidate)])
        selection = within(self.select(query, found_texts), self.selector.max_tokens, form=form)
        excerpts, doc_id = excerpts_of(selection, piece_tokens=form.piece_tokens), found_texts.doc_id
        kept = ((replace(one, doc_id=doc_id(one.best.candidate)), True, one.reason) for one in excerpts)
        dropped = (d for d in selection.decisions if not d.kept)
        others = ((replace(d.candidate, doc_id=doc_id(d.candidate)), False, d.reason) for d in dropped)
        return Selection.of(chain(kept, others))

    def select(self, query: str, texts: FoundTexts) -> Selection:
        """Return the decisions on the sentences of the texts, grown, without a limit."""
        if not texts.sentences.kept:
            return Selection()
        ranked = rerank(query, texts.sentences.kept, self.reranker, texts)
        read = share_places(query, ranked, N_FOUND).selection
        grown = read.then(EvidenceGrower(texts).grow(query, read.kept), may_return=True)
        grown = texts.sentences.then(grown)
        return grown.then(self.selector.select(grown.kept, query=query))
