"""What a reranker reads around a candidate's text: what the document says just before and after it."""

from collections.abc import Sequence
from dataclasses import replace

from precise_rag.protocols import Neighbours
from precise_rag.types import Candidate

_LONGEST = 160
"""Characters on each side, at most; the network reads some twenty tokens of them."""
_REACH = 2
"""Sentences on each side that are asked for."""


def with_text_around(candidates: Sequence[Candidate], source: Neighbours) -> list[Candidate]:
    """Give candidates the text around them, as `before` and `after`.

    "He signed it there in 1791." says little alone, and enough after "Washington came to Philadelphia."
    source: knows the text, such as an index of sentences; candidates that it does not know have none.
    Returns the candidates in their order.
    """
    around = {}
    for text, sentences in source.neighbours(candidates, _REACH):
        for sentence in sentences:
            start = sentence.start - sentences[0].start
            around[sentence.id] = text_around(text, start, start + len(sentence.text))
    known = ((one, *around.get(one.id, ("", ""))) for one in candidates)
    return [replace(one, before=before, after=after) for one, before, after in known]


def text_around(text: str, start: int, end: int) -> tuple[str, str]:
    """Return the words of a text just before `start` and just after `end`, at most 160 characters of each."""
    first, last = max(0, start - _LONGEST), end + _LONGEST
    before, after = text[first:start], text[end:last]
    if first:
        before = before.partition(" ")[2]
    if last < len(text):
        after = after.rpartition(" ")[0]
    return before, after
