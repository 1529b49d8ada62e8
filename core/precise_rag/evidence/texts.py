"""Texts that anything found, as sentences that know their neighbours."""

from collections.abc import Sequence
from dataclasses import replace

from precise_rag.evidence.stretches import split_into_sentences
from precise_rag.protocols import SentenceSplitter
from precise_rag.types import Candidate, Selection, Stretch


class FoundTexts:
    """The sentences of texts that a search without sentences found, for an `EvidenceGrower`.

    sentences: all, without scores, because the score of its text says little about a sentence. One that
        repeats another is dropped.
    texts: candidates of any length.
    splitter: splits the texts into sentences; default: `load_sentence_splitter()`.
    """

    def __init__(self, texts: Sequence[Candidate], splitter: SentenceSplitter | None = None) -> None:
        plain = [replace(text, score=0.0, scores={}) for text in texts]
        self._stretches = [split_into_sentences(text, splitter) for text in plain]
        self._number: dict[str, int] = {}
        first: dict[str, str] = {}
        verdicts = []
        for number, stretch in enumerate(self._stretches):
            for sentence in stretch.sentences:
                if self._number.setdefault(sentence.id, number) == number:
                    is_new = first.setdefault(sentence.text, sentence.id) == sentence.id
                    verdicts.append((sentence, is_new, "" if is_new else "a sentence before it is the same"))
        self.sentences = Selection.of(verdicts)

    def neighbours(self, sentences: Sequence[Candidate], reach: int) -> list[Stretch]:
        """Return the texts that hold any of the sentences, whole."""
        known = (self._number.get(sentence.id) for sentence in sentences)
        numbers = sorted({number for number in known if number is not None})
        return [self._stretches[number] for number in numbers]
