"""Questions that documents ask themselves: their headings, answered by the text below."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from precise_rag.evaluation.datasets import Evidence, Question
from precise_rag.stems import QUESTION_WORDS, read_words
from precise_rag.structure import heading_title, read_structure
from precise_rag.types import Document

_CHARACTERS = 250_000
"""Characters of the documents that are read, drawn at random."""
_ANSWER = 500
"""Characters below a heading that hold its answer, at most."""
_SHORTEST_ANSWER = 80
_FEWEST_WORDS = 2

_PLAIN = re.compile(
    r"\W*(introduction|abstract|summary|overview|see also|conclusions?|references|notes?|examples?|remarks|"
    r"background|table of contents|contents|chapter|appendix|part|section|acknowledge?ments?|changelog)\b",
    re.IGNORECASE,
)
"""Headings that say what a section is for, not what it is about."""


class OwnQuestions(NamedTuple):
    """Documents without the headings that are asked, and the questions about them."""

    documents: list[Document]
    questions: list[Question]


def own_questions(documents: Iterable[Document], *, most: int = 300, seed: int = 0) -> OwnQuestions:
    """Return questions that documents ask themselves, and the documents without them.

    Every other heading with a text below it is asked, and cut out of its document: what is to be found must
    not be the question itself.

    documents: of a collection; of a large one some are drawn.
    most: questions at most.
    seed: of the draw.
    """
    given = list(documents)
    drawn: list[Document] = []
    asked: list[Question] = []
    left = _CHARACTERS
    for row in np.random.default_rng(seed).permutation(len(given)).tolist():
        if left <= 0 or len(asked) >= most:
            break
        document, questions = _cut(given[row])
        left -= len(document.text)
        drawn.append(document)
        asked += questions
    return OwnQuestions(drawn, asked[:most])


class _Heading(NamedTuple):
    """A heading at `start`, the text below it from `end` to `below`, and its words."""

    start: int
    end: int
    below: int
    title: str


def _cut(document: Document) -> tuple[Document, list[Question]]:
    """A document without every other of its headings, and these as questions."""
    text = document.text
    pieces: list[str] = []
    asked: list[Question] = []
    done = shift = 0
    for heading in list(_headings(text))[::2]:
        pieces.append(text[done : heading.start])
        done = heading.end
        shift += heading.end - heading.start
        start, end = heading.end - shift, min(heading.below, heading.end + _ANSWER) - shift
        evidence = (Evidence(document.id, start, end),)
        asked.append(Question(f"{document.id}#{heading.start}", heading.title, evidence))
    pieces.append(text[done:])
    return Document(document.id, "".join(pieces), document.metadata), asked


def _headings(text: str) -> Iterator[_Heading]:
    """The headings that ask for something and have a text below them."""
    blocks = read_structure(text).blocks
    numbers = [row for row, block in enumerate(blocks) if block.kind == "heading"]
    for row, following in pairwise([*numbers, len(blocks)]):
        start, end = blocks[row].start, blocks[row].end
        below = blocks[following - 1].end
        title = heading_title(text[start:end])
        if row and len(text[end:below].strip()) >= _SHORTEST_ANSWER and _asks(title):
            yield _Heading(start, end, below, title)


def _asks(title: str) -> bool:
    words: Sequence[str] = [word for word in read_words(title).stems if word not in QUESTION_WORDS]
    return len(words) >= _FEWEST_WORDS and not _PLAIN.match(title)
