"""Evidence in texts that anything retrieved: their relevant sentences, grown to spans."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from precise_rag.evidence.grower import EvidenceGrower
from precise_rag.evidence.stretches import split_into_sentences
from precise_rag.protocols import Reranker, SentenceSplitter
from precise_rag.rerank import rerank
from precise_rag.selection import WorthSelector
from precise_rag.types import Candidate, Decision, Selection, Stretch, check_query

N_FOUND = 50
"""Sentences that count as found: those that the reranker puts first."""


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

    reranker: scores the sentences; its scores must be probabilities or logits.
    selector: default: `WorthSelector()`. With min_keep=0 nothing is kept if nothing is relevant.
    splitter: splits the texts into sentences; default: `load_sentence_splitter()`.
    """

    def __init__(
        self,
        reranker: Reranker,
        selector: WorthSelector | None = None,
        *,
        splitter: SentenceSplitter | None = None,
    ) -> None:
        self.reranker = reranker
        self.selector = selector or WorthSelector()
        self.splitter = splitter

    def extract(self, query: str, texts: Sequence[Candidate]) -> Extraction:
        """Return the evidence in the texts.

        query: not blank.
        texts: of any length, each with the scores that its retriever gave, if any.
        """
        check_query(query)
        pieces = _Pieces([split_into_sentences(text, self.splitter) for text in texts])
        if not pieces.sentences:
            return Extraction()
        ranked = self._ranked(query, pieces.sentences)
        grown = EvidenceGrower(pieces).grow(query, ranked[:N_FOUND])
        selection = grown.then(self.selector.select(grown.kept))
        spans = pieces.spans(selection, {d.candidate.id: d.reason for d in grown.decisions})
        return Extraction(spans, pieces.dropped(selection))

    def _ranked(self, query: str, sentences: Sequence[Candidate]) -> list[Candidate]:
        """Rerank by the sentences' text: the scores that their whole texts had say little about each."""
        former = {sentence.id: sentence for sentence in sentences}
        texts = [replace(sentence, score=0.0, scores={}) for sentence in sentences]
        return [
            replace(c, scores={**former[c.id].scores, **c.scores, "retrieval": former[c.id].score})
            for c in rerank(query, texts, self.reranker)
        ]


class _Pieces:
    """The sentences of several texts; knows their neighbours.

    sentences: each once. In here a sentence's document is its text, so that two texts with the same
    offsets stay apart.
    """

    def __init__(self, stretches: Sequence[Stretch]) -> None:
        self._documents = [s.sentences[0].doc_id if s.sentences else "" for s in stretches]
        self._stretches = [
            Stretch(s.text, tuple(replace(one, doc_id=str(number)) for one in s.sentences))
            for number, s in enumerate(stretches)
        ]
        seen: set[str] = set()
        self.sentences: list[Candidate] = []
        self._repeated: set[str] = set()
        for sentence in (one for stretch in self._stretches for one in stretch.sentences):
            if sentence.text in seen:
                self._repeated.add(sentence.id)
            else:
                seen.add(sentence.text)
                self.sentences.append(sentence)

    def neighbours(self, sentences: Sequence[Candidate], reach: int) -> list[Stretch]:
        """Return the texts that hold any of the sentences, whole."""
        numbers = sorted({int(sentence.doc_id) for sentence in sentences})
        return [self._stretches[number] for number in numbers]

    def dropped(self, selection: Selection) -> tuple[Decision, ...]:
        """Return the decisions on the sentences that are not kept, with their documents."""
        return tuple(
            d._replace(candidate=replace(d.candidate, doc_id=self._documents[int(d.candidate.doc_id)]))
            for d in selection.decisions
            if not d.kept
        )

    def spans(self, selection: Selection, reasons: dict[str, str]) -> tuple[EvidenceSpan, ...]:
        """Join the kept sentences that follow each other in a text."""
        kept = {d.candidate.id: d for d in selection.decisions if d.kept}
        kept = {key: d for key, d in kept.items() if key not in self._repeated}
        ranks = {d.candidate.doc_id: d.rank for d in reversed(kept.values())}
        best: dict[str, int] = {}
        for number, rank in ranks.items():
            document = self._documents[int(number)]
            best[document] = min(rank, best.get(document, rank))
        order = sorted(
            map(int, ranks),
            key=lambda n: (best[self._documents[n]], self._stretches[n].sentences[0].start, n),
        )
        return tuple(span for number in order for span in self._joined(number, kept, reasons))

    def _joined(self, number: int, kept: dict[str, Decision], reasons: dict[str, str]) -> list[EvidenceSpan]:
        text, sentences = self._stretches[number]
        origin = sentences[0].start
        runs: list[list[Decision]] = [[]]
        for sentence in sentences:
            if sentence.id in kept:
                runs[-1].append(kept[sentence.id])
            elif runs[-1]:
                runs.append([])
        spans = []
        for run in filter(None, runs):
            best = min(run, key=lambda decision: decision.rank).candidate
            start, end = run[0].candidate.start, run[-1].candidate.end
            span = replace(
                best,
                doc_id=self._documents[number],
                start=start,
                end=end,
                text=text[start - origin : end - origin],
                n_tokens=sum(decision.candidate.n_tokens or 0 for decision in run),
            )
            spans.append(EvidenceSpan(number, span, _why(best, run, reasons)))
        return spans


def _why(best: Candidate, run: Sequence[Decision], reasons: dict[str, str]) -> str:
    others = len(run) - 1
    more = f"; {others} more sentence{'s' * (others > 1)} came along" if others else ""
    return f"{reasons.get(best.id, 'found')}{more}"
