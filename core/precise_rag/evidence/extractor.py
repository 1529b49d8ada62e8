"""Evidence in texts that anything retrieved: their relevant sentences, grown to spans."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from precise_rag.checks import check_number, items_of
from precise_rag.evidence.grower import EvidenceGrower
from precise_rag.evidence.texts import FoundTexts
from precise_rag.excerpts import PLAIN, Form, excerpts_of, within
from precise_rag.protocols import SentenceSplitter
from precise_rag.rerank import calibrated, load_reranker, rerank
from precise_rag.selection import ProbabilitySelector
from precise_rag.sharing import share_places
from precise_rag.types import Candidate, Decision, Excerpt, Selection, check_query

N_FOUND = 200
"""Sentences that count as found: those that the reranker puts first, shared among the documents."""
FROM_TEXTS = ProbabilitySelector(share_of_best=0.005, min_score=0.0005, enough_tokens=2000, enough_share=0.5)
"""Keeps more than others do: a retriever has found the texts good, and no search has chosen the sentences."""


class Extraction(NamedTuple):
    """The evidence in some texts.

    excerpts: what is sent, in its order; the places count from the start of the text that they are in.
    dropped: the sentences that were found or came along, and are not kept.
    """

    excerpts: tuple[Excerpt, ...] = ()
    dropped: tuple[Decision, ...] = ()

    @property
    def selection(self) -> Selection:
        """The decisions: the excerpts in their order, then what was dropped."""
        kept = [(excerpt, True, excerpt.reason) for excerpt in self.excerpts]
        return Selection.of([*kept, *((d.candidate, False, d.reason) for d in self.dropped)])


class EvidenceExtractor:
    """Cuts retrieved texts down to the evidence in them.

    All sentences of the texts are reranked together. The best N_FOUND grow to their neighbours in the
    same text, see `EvidenceGrower`, and the selector decides what is sent, as excerpts; see `excerpts_of`.
    A sentence that is in several texts is kept once.

    reranker: scores the sentences; anything that `load_reranker` takes.
    selector: default: `FROM_TEXTS`. With min_keep=0 nothing is kept if nothing is relevant.
    splitter: splits the texts into sentences; default: `load_sentence_splitter()`.
    """

    def __init__(
        self,
        reranker: Any = "default",
        selector: ProbabilitySelector | None = None,
        *,
        splitter: SentenceSplitter | None = None,
    ) -> None:
        self.reranker = calibrated(load_reranker(reranker))
        self.selector = selector or FROM_TEXTS
        self.splitter = splitter

    def extract(
        self,
        query: str,
        texts: Sequence[Candidate],
        form: Form = PLAIN,
        *,
        max_tokens: int | None = None,
    ) -> Extraction:
        """Return the evidence in the texts.

        query: not blank.
        texts: of any length, each with the scores that its retriever gave, if any.
        form, max_tokens: as for `within`; default of max_tokens: the selector's.
        """
        check_query(query)
        check_number("max_tokens", max_tokens, least=1, whole=True, none="the selector's limit")
        found_texts = FoundTexts(query, [*items_of("texts", texts, Candidate)], self.splitter)
        limit = max_tokens or self.selector.max_tokens
        selection = within(self.select(query, found_texts), limit, form=form)
        excerpts, doc_id = excerpts_of(selection, piece_tokens=form.piece_tokens), found_texts.doc_id
        dropped = [one for one in selection.decisions if not one.kept]
        return Extraction(
            tuple(replace(one, doc_id=doc_id(one.best.candidate)) for one in excerpts),
            tuple(d._replace(candidate=replace(d.candidate, doc_id=doc_id(d.candidate))) for d in dropped),
        )

    def select(self, query: str, texts: FoundTexts) -> Selection:
        """Return the decisions on the sentences of the texts, grown, without a limit."""
        if not texts.sentences.kept:
            return Selection()
        ranked = rerank(query, texts.sentences.kept, self.reranker, texts)
        read = share_places(query, ranked, N_FOUND).selection
        grown = read.then(EvidenceGrower(texts).grow(query, read.kept), may_return=True)
        grown = texts.sentences.then(grown)
        return grown.then(self.selector.select(grown.kept, query=query))
