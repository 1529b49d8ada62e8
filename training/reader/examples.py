"""Examples for the reader: windows of paragraphs with several questions, some without an answer there."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from precise_rag.types import Span
from training.question_rules import as_typed
from training.reader.questions import Paragraph, rarity

AT_ONCE = 5
"""Questions that are asked of a window in one turn, at most."""

WHOLE = 0.15
"""Share of the windows that are whole paragraphs; the others are some sentences around an answer."""

LONGEST = 900
"""Characters of a window, at most."""

ELSEWHERE = 0.3
"""Questions about another paragraph of the same document, for each question about this one."""

CHANGED = 0.15
"""Share of the questions that are asked once more with a name or a number of another paragraph in place of
their own, so that nothing answers them."""

_WORD = re.compile(r"\w+")
_NAME = re.compile(r"(?<=[a-z,] )(?:[A-Z][\w'’\-]+(?: [A-Z][\w'’\-]+)*|\d[\d,.]*\d|\d)")


class Window(NamedTuple):
    """A window of a paragraph: its text, and questions with the spans of their answers in it."""

    text: str
    asked: list[tuple[str, list[Span]]]


class Windows:
    """Draws windows, paragraph by paragraph, without end."""

    def __init__(self, paragraphs: Sequence[Paragraph], seed: int) -> None:
        self._paragraphs = paragraphs
        self._random = np.random.default_rng(seed)
        self._words = {p.text: set(_WORD.findall(p.text.lower())) for p in paragraphs}
        self._rarity = rarity(paragraphs, self._words)
        self._of_document: dict[str, list[Paragraph]] = {}
        for paragraph in paragraphs:
            self._of_document.setdefault(paragraph.doc_id, []).append(paragraph)

    def round(self) -> Iterator[Window]:
        """Yield windows so that each question is asked once, in random order."""
        turns: list[tuple[Paragraph, list[tuple[str, list[Span]]]]] = []
        for paragraph in self._paragraphs:
            asked = [paragraph.asked[row] for row in self._random.permutation(len(paragraph.asked))]
            turns += [(paragraph, asked[i : i + AT_ONCE]) for i in range(0, len(asked), AT_ONCE)]
        for row in self._random.permutation(len(turns)):
            yield self._window(*turns[row])

    def _window(self, paragraph: Paragraph, asked: list[tuple[str, list[Span]]]) -> Window:
        random = self._random
        start, end = self._bounds(paragraph, asked)
        inside = []
        for question, spans in asked:
            here = [Span(s - start, e - start) for s, e in spans if start <= s and e <= end]
            inside.append((as_typed(question, random) if random.random() < 0.3 else question, here))
            if random.random() < CHANGED and (changed := self._changed(question, paragraph)):
                inside.append((changed, []))
        window = Window(paragraph.text[start:end], inside)
        drawn = range(random.binomial(len(asked), ELSEWHERE))
        others = (self._elsewhere(paragraph, window.text) for _ in drawn)
        inside += [(other, []) for other in others if other]
        return window

    def _bounds(self, paragraph: Paragraph, asked: Sequence[tuple[str, list[Span]]]) -> Span:
        """The whole paragraph, or some sentences around the first answer."""
        random, text = self._random, paragraph.text
        if len(text) <= LONGEST and random.random() < WHOLE:
            return Span(0, len(text))
        spans = [span for _, several in asked for span in several[:1]] or [paragraph.sentences[0]]
        middle = spans[0]
        rows = [n for n, s in enumerate(paragraph.sentences) if s.start < middle.end and s.end > middle.start]
        first, last = min(rows), max(rows)
        wanted = LONGEST if random.random() < 0.1 else int(random.integers(1, 360))
        while True:
            more = [(first - 1, last)] if first else []
            more += [(first, last + 1)] if last + 1 < len(paragraph.sentences) else []
            more = [(a, b) for a, b in more if self._length(paragraph, a, b) <= wanted]
            if not more:
                break
            first, last = more[random.integers(len(more))]
        return Span(paragraph.sentences[first].start, paragraph.sentences[last].end)

    @staticmethod
    def _length(paragraph: Paragraph, first: int, last: int) -> int:
        return paragraph.sentences[last].end - paragraph.sentences[first].start

    def _elsewhere(self, paragraph: Paragraph, text: str) -> str | None:
        """A question about another paragraph; of some that are drawn, the one most like the text."""
        random = self._random
        others = self._of_document[paragraph.doc_id]
        drawn = [others[row] for row in random.integers(len(others), size=6)]
        drawn.append(self._paragraphs[random.integers(len(self._paragraphs))])
        words = set(_WORD.findall(text.lower()))
        best, found = -1.0, None
        for other in drawn:
            question, spans = other.asked[random.integers(len(other.asked))]
            answers = [other.text[s:e].lower() for s, e in spans]
            if other is paragraph or any(answer in text.lower() for answer in answers):
                continue
            mine = set(_WORD.findall(question.lower()))
            alike = sum(self._rarity.get(word, 8.0) for word in mine & words) / max(1, len(mine)) ** 0.5
            if alike > best:
                best, found = alike, question
        return found

    def _changed(self, question: str, paragraph: Paragraph) -> str | None:
        """The question with one of its names or numbers replaced by another of the same kind."""
        mine = [m.span() for m in _NAME.finditer(question)]
        if not mine:
            return None
        random = self._random
        start, end = mine[random.integers(len(mine))]
        others = self._of_document[paragraph.doc_id]
        other = others[random.integers(len(others))]
        is_number = question[start].isdigit()
        names = [
            name
            for name in _NAME.findall(other.text)
            if name[0].isdigit() == is_number and name.lower() not in question.lower()
        ]
        if not names:
            return None
        return question[:start] + str(names[random.integers(len(names))]) + question[end:]
