"""Turns of speakers in a transcript, and the titles between them."""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from itertools import zip_longest

from precise_rag.structure.blocks import BlockStart
from precise_rag.structure.marks import MAIL_HEAD, TURN, speaker

_FEWEST_TURNS, _SHARE_OF_TURNS = 4, 0.3
_FEWEST_SPEAKERS, _TURNS_OF_A_SPEAKER = 2, 2


def with_turns(text: str, starts: list[BlockStart]) -> list[BlockStart]:
    """Split paragraphs at the lines where a speaker begins, if the text is a transcript.

    It is one if many lines begin with a label and the labels repeat.
    """
    without_heads = MAIL_HEAD.sub(lambda head: " " * len(head[0]), text)
    labels = [(match.end("indent"), speaker(match)) for match in TURN.finditer(without_heads)]
    n_paragraphs = sum(kind in ("paragraph", "heading", "item") for _, kind, _ in starts)
    speakers = Counter(label for _, label in labels)
    repeated = [count for count in speakers.values() if count >= _TURNS_OF_A_SPEAKER]
    n_turns = sum(repeated)
    is_transcript = n_turns >= max(_FEWEST_TURNS, _SHARE_OF_TURNS * n_paragraphs, 2 * len(repeated))
    if len(repeated) < _FEWEST_SPEAKERS or not is_transcript or 2 * n_turns < len(labels):
        return starts
    blocks = {block[0]: block for block in starts}
    edges = list(blocks)
    for place, _ in labels:
        begin, around, _ = starts[max(bisect_right(edges, place) - 1, 0)]
        if around not in ("code", "table"):
            start = begin if text[begin:place].isspace() else place
            blocks[start] = (start, "turn", 0)
    return list(_with_titles(text, sorted(blocks.values())))


def _with_titles(text: str, starts: list[BlockStart]) -> Iterator[BlockStart]:
    """The blocks of a transcript; lines between turns become headings of the turns below them."""
    for block, after in zip_longest(starts, starts[1:]):
        is_before_turn = after is not None and after[1] == "turn"
        if block[1] == "paragraph" and is_before_turn and _TITLE.fullmatch(text, block[0], after[0]):
            block = (block[0], "heading", _LEVEL_OF_TITLES)
        yield block


_LEVEL_OF_TITLES = 20
_TITLE = re.compile(
    r"[ \t]*[^\W\d_a-z][^\n]{0,198}(?:[^\s.,;:!?。，；：！？…\-–—]|\b(?:etc|Co|Inc|Ltd|Jr|Sr)\.)"
    r"[ \t]*(?:\n[ \t]*){2,}"
)
"""A line without a full stop, unless an abbreviation has one, with a blank line after it."""
