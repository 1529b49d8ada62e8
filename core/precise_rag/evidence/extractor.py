"""Evidence in texts that anything retrieved: their relevant sentences, grown to spans."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import NamedTuple

from precise_rag.evidence.grower import EvidenceGrower
from precise_rag.evidence.texts import FoundTexts
from precise_rag.protocols import Reranker, SentenceSplitter
from precise_rag.rerank import calibrated, rerank
from precise_rag.selection import ProbabilitySelector
from precise_rag.sharing import share_places
from precise_rag.types import Candidate, Decision, Selection, check_query

N_FOUND = 100
"""Sentences that count as found: those that the reranker puts first, shared among the documents."""


class EvidenceSpan(NamedTuple):
    """A part of one of the texts that is sent.

    piece: number of the text, from 0. candidate: the part, with the score of its best sentence; `start`
    and `end` count from the text's own `start`. reason: why it was kept.
    """

    piece: int
    candidate: Candidate
    reason: str


class Extraction(NamedTuple):
    """The evidence in some texts.

    spans: what is kept, in the order of the text; the document with the best sentence comes first.
    dropped: the sentences that were found or came along, and are not kept.
    """

    spans: tuple[EvidenceSpan, ...] = ()
    dropped: tuple[Decision, ...] = ()

    @property
    def selection(self) -> Selection:
        """The decisions: the spans in their order, then what was dropped."""
        spans = [(span.candidate, True, span.reason) for span in self.spans]
        return Selection.of([*spans, *((d.candidate, False, d.reason) for d in self.dropped)])


class EvidenceExtractor:
    """Cuts retrieved texts down to the evidence in them.

    All sentences of the texts are reranked together. The best N_FOUND grow to their neighbours in the
    same text, see `EvidenceGrower`, and the selector decides what is sent. Sentences that are kept and
    follow each other are one span. A sentence that is in several texts is kept once.

    reranker: scores the sentences; any, see `calibrated`.
    selector: default: `ProbabilitySelector()`. With min_keep=0 nothing is kept if nothing is relevant.
    splitter: splits the texts into sentences; default: `load_sentence_splitter()`.
    """

    def __init__(
        self,
        reranker: Reranker,
        selector: ProbabilitySelector | None = None,
        *,
        splitter: SentenceSplitter | None = None,
    ) -> None:
        self.reranker = calibrated(reranker)
        self.selector = selector or ProbabilitySelector()
        self.splitter = splitter

    def extract(self, query: str, texts: Sequence[Candidate]) -> Extraction:
        """Return the evidence in the texts.

        query: not blank.
        texts: of any length, each with the scores that its retriever gave, if any.
        """
        check_query(query)
        found = FoundTexts(query, texts, self.splitter)
        if not found.sentences.kept:
            return Extraction()
        ranked = rerank(query, found.sentences.kept, self.reranker)
        read = found.sentences.then(share_places(query, ranked, N_FOUND).selection)
        grown = read.then(EvidenceGrower(found).grow(query, read.kept))
        selection = grown.then(self.selector.select(grown.kept, query=query))
        reasons = {d.candidate.id: d.reason for d in grown.decisions}
        dropped = (d for d in selection.decisions if not d.kept)
        return Extraction(
            tuple(_spans(texts, found, selection, reasons)),
            tuple(
                d._replace(candidate=replace(d.candidate, doc_id=texts[found.number(d.candidate)].doc_id))
                for d in dropped
            ),
        )


def _spans(
    texts: Sequence[Candidate], found: FoundTexts, selection: Selection, reasons: Mapping[str, str]
) -> Iterator[EvidenceSpan]:
    """Join the kept sentences that follow each other in a text."""
    kept: dict[int, dict[str, Decision]] = {}
    best: dict[str, int] = {}
    for decision in selection.decisions:
        if decision.kept:
            number = found.number(decision.candidate)
            kept.setdefault(number, {})[decision.candidate.id] = decision
            best.setdefault(texts[number].doc_id, decision.rank)
    order = sorted(kept, key=lambda n: (best[texts[n].doc_id], texts[n].start, n))
    for number in order:
        text, sentences = found.stretches[number]
        origin = sentences[0].start
        for is_kept, group in groupby(sentences, key=lambda sentence: sentence.id in kept[number]):
            if not is_kept:
                continue
            run = [kept[number][sentence.id] for sentence in group]
            leader = min(run, key=lambda decision: decision.rank).candidate
            start, end = run[0].candidate.start, run[-1].candidate.end
            span = replace(
                leader,
                doc_id=texts[number].doc_id,
                start=start,
                end=end,
                text=text[start - origin : end - origin],
                n_tokens=sum(decision.candidate.n_tokens or 0 for decision in run),
            )
            yield EvidenceSpan(number, span, _why(leader, run, reasons))


def _why(best: Candidate, run: Sequence[Decision], reasons: Mapping[str, str]) -> str:
    others = len(run) - 1
    more = f"; {others} more sentence{'s' * (others > 1)} came along" if others else ""
    return f"{reasons.get(best.id, 'found')}{more}"
