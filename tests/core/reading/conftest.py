from collections.abc import Sequence

import pytest

from precise_rag.types import Candidate, ExtractedAnswer, Reading


class WordReader:
    """Finds a word, and says how probably that answers."""

    def __init__(self, word: str, answered: float | None) -> None:
        self.word, self.answered = word, answered

    def read(self, query: str, texts: Sequence[Candidate]) -> Reading:
        found = [(text, text.text.find(self.word)) for text in texts]
        answers = tuple(
            ExtractedAnswer(
                text.doc_id, text.start + at, text.start + at + len(self.word), self.word, 0.9 - 0.1 * number
            )
            for number, (text, at) in enumerate(found)
            if at >= 0
        )
        return Reading(answers, self.answered)


@pytest.fixture
def word_reader() -> type[WordReader]:
    return WordReader
