"""Texts that anything found, as sentences that know their neighbours."""

from collections.abc import Sequence
from dataclasses import replace

from precise_rag.evidence.records import records
from precise_rag.evidence.stretches import Split, split_into_sentences
from precise_rag.sharing import Said, with_insistent
from precise_rag.structure import Structure, read_structure
from precise_rag.titles import titles_above
from precise_rag.types import Candidate, Selection, Stretch

_WIDEST_GAP = 4
"""Characters of white space, at most, that a splitter leaves out between two texts."""
_LONGEST_WHOLE = 500_000
"""Characters from which on texts are joined no more: each is copied once more for every text behind it."""


class FoundTexts:
    """The sentences of texts that a search without sentences found, for an `EvidenceGrower`.

    stretches: the sentences of each text. A sentence has the score of its text, but no others: those say
        little about it. If two texts differ at one place, the later one has another document id here.
    sentences: each once, see `Said`. One that repeats another is dropped; but if that is in another record,
        it is only left out here, and comes along with its own record.
    query: what the texts were found for.
    texts: candidates of any length.
    split: splits the texts into sentences; default: `load_sentence_splitter()`.
    """

    def __init__(self, query: str, texts: Sequence[Candidate], split: Split | None = None) -> None:
        self.stretches: list[Stretch] = []
        self._texts = texts
        self._number: dict[str, int] = {}
        known: dict[str, str] = {}
        record_of: dict[str, str] = {}
        sentences: list[Candidate] = []
        for number, (text, whole) in enumerate(zip(texts, _joined(texts), strict=True)):
            stretch = split_into_sentences(replace(text, scores={}), split, whole)
            if any(known.get(sentence.id, sentence.text) != sentence.text for sentence in stretch.sentences):
                others = tuple(replace(one, doc_id=f"{one.doc_id}#{number}") for one in stretch.sentences)
                stretch = stretch._replace(sentences=others)
            self.stretches.append(stretch)
            for record in records(stretch) if stretch.sentences else ():
                rows = stretch.sentences[record.start : record.stop]
                record_of |= dict.fromkeys((row.id for row in rows), "\n".join(row.text for row in rows))
            for sentence in stretch.sentences:
                known[sentence.id] = sentence.text
                if self._number.setdefault(sentence.id, number) == number:
                    sentences.append(sentence)
        said, told = Said(), with_insistent(query, sentences)
        formers = {one.id: said.before(one) for one in sorted(told, key=lambda one: -len(one.above))}
        self.sentences = Selection.of(
            (one, not former, former and f"repeats {former}")
            for one in told
            if not (former := formers[one.id]) or record_of.get(one.id) == record_of.get(former)
        )

    def doc_id(self, sentence: Candidate) -> str:
        """Return the document of the first text that holds the sentence."""
        return self._texts[self._number[sentence.id]].doc_id

    def neighbours(self, sentences: Sequence[Candidate], reach: int) -> list[Stretch]:
        """Return the texts that hold any of the sentences, whole."""
        numbers = sorted({self._number[one.id] for one in sentences if one.id in self._number})
        return [self.stretches[number] for number in numbers]


def _joined(texts: Sequence[Candidate]) -> list[tuple[Candidate, Structure]]:
    """For each text, what it makes with those of its document around it that it overlaps or nearly meets.

    Only white space is between two of them, and what both have is the same. The structure of each whole is
    read once.
    """
    joined: list[Candidate] = []
    number: dict[int, int] = {}
    for row in sorted(range(len(texts)), key=lambda row: (texts[row].doc_id, texts[row].start)):
        text, whole = texts[row], joined[-1] if joined else texts[row]
        at, size = text.start - whole.start, len(text.text)
        is_next = whole.doc_id == text.doc_id and at <= min(len(whole.text), _LONGEST_WHOLE) + _WIDEST_GAP
        is_next = is_next and titles_above(text) == titles_above(whole)
        if joined and is_next and text.text.startswith(whole.text[at : at + size]):
            words = whole.text[:at].ljust(at, "\n") + text.text + whole.text[at + size :]
            joined[-1] = replace(whole, end=whole.start + len(words), text=words)
        else:
            joined.append(text)
        number[row] = len(joined) - 1
    wholes = [(whole, read_structure(whole.text)) for whole in joined]
    return [wholes[number[row]] for row in range(len(texts))]
