"""Turns of speakers in a transcript, or records of labels, with their titles."""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import zip_longest

from precise_rag.structure.blocks import BlockStart
from precise_rag.structure.marks import MAIL_HEAD, TURN, speaker

_FEWEST_TURNS, _SHARE_OF_TURNS = 4, 0.3
_FEWEST_SPEAKERS, _TURNS_OF_A_SPEAKER = 2, 2
_FEWEST_RECORDS, _SHARE_OF_RECORDS = 3, 0.75


def with_turns(text: str, starts: list[BlockStart]) -> list[BlockStart]:
    """Split paragraphs at the lines where a speaker begins, if the text is a transcript.

    It is one if many lines begin with a label and the labels repeat. If three follow each other time after
    time, they are those of records, and the line with the first is a heading.
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
    first = _first_of_records([name for _, name in labels], len(_SENTENCE.findall(text)))
    for place, name in labels:
        begin, around, _ = starts[max(bisect_right(edges, place) - 1, 0)]
        start = begin if text[begin:place].isspace() else place
        if around in ("code", "table") or first not in ("", name):
            continue
        blocks[start] = (start, "heading" if first else "turn", _LEVEL_OF_TITLES * bool(first))
        end = text.find("\n", place) + 1
        if first and end and text[end : end + 1] != "\n":
            blocks.setdefault(end, (end, "paragraph", 0))
    return sorted(blocks.values()) if first else list(_with_titles(text, sorted(blocks.values())))


def _first_of_records(names: Sequence[str], n_sentences: int) -> str:
    """The label that begins records with prose, such as "Title", if two others follow it each time; or ""."""
    several = Counter(zip(names, names[1:], names[2:], strict=False))
    for labels, n_records in several.most_common(1):
        fewest = max(_FEWEST_RECORDS, _SHARE_OF_RECORDS * names.count(labels[0]))
        if n_sentences >= n_records >= fewest and len({*labels}) == len(labels):
            return labels[0]
    return ""


def _with_titles(text: str, starts: list[BlockStart]) -> Iterator[BlockStart]:
    """The blocks of a transcript; lines between turns become headings of the turns below them."""
    for block, after in zip_longest(starts, starts[1:]):
        is_before_turn = after is not None and after[1] == "turn"
        if block[1] == "paragraph" and is_before_turn and _TITLE.fullmatch(text, block[0], after[0]):
            block = (block[0], "heading", _LEVEL_OF_TITLES)
        yield block


_SENTENCE = re.compile(r"(?m)[^\W\d_]{2}[.!?](?:[ \t]*$|[ \t]+[^\W\d_a-z])|[。！？]")
_LEVEL_OF_TITLES = 20
_TITLE = re.compile(
    r"[ \t]*[^\W\d_a-z][^\n]{0,198}(?:[^\s.,;:!?。，；：！？…\-–—]|\b(?:etc|Co|Inc|Ltd|Jr|Sr)\.)"
    r"[ \t]*(?:\n[ \t]*){2,}"
)
"""A line without a full stop, unless an abbreviation has one, with a blank line after it."""
