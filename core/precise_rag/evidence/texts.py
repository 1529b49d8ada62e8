"""Texts that anything found, as sentences that know their neighbours."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from precise_rag.evidence.records import records
from precise_rag.evidence.stretches import Split, split_into_sentences
from precise_rag.sharing import Said, with_insistent
from precise_rag.structure import read_structure
from precise_rag.titles import titles_above, titles_at
from precise_rag.types import Candidate, Selection, Stretch, Titles


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
        above = _from_texts_before(texts)
        for number, text in enumerate(texts):
            text = replace(text, scores={}, above=above.get(number, text.above))
            stretch = split_into_sentences(text, split)
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


def _from_texts_before(texts: Sequence[Candidate]) -> dict[int, Titles]:
    """The titles above texts that begin in another, or behind some white space: it may end with a heading."""
    found: dict[int, Titles] = {}
    rows = sorted(range(len(texts)), key=lambda row: (texts[row].doc_id, texts[row].start))
    for row, after in pairwise(rows):
        one, other = texts[row], texts[after]
        if one.doc_id == other.doc_id and one.start < other.start <= one.end + 4:
            part = f"{one.text[: other.start - one.start]}\n\n."
            above = found.get(row, titles_above(one))
            (titles,) = titles_at(above, one.metadata, part, read_structure(part), [len(part) - 1])
            if titles[: len(titles_above(other))] == titles_above(other):
                found[after] = titles
    return found
