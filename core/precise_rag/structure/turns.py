"""Turns of speakers in a transcript, or records of labels, with their titles, and entries of a log."""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from statistics import median

from precise_rag.structure.blocks import BlockStart
from precise_rag.structure.marks import COLUMNS, MAIL_HEAD, STOPS, TURN, WIDE, after_space, indent_of, speaker
from precise_rag.structure.plain_lines import LONGEST_HEADING, STOP, Line, read_lines

_BEFORE = re.compile(r"\s*+(?:(?:\d{1,6}\s{1,4})?[\d:.,]{9,12} {1,9}-->[^\n]*\n)?[ \t]*+")
"""What belongs to a turn before its label: also the time of a caption."""
_FEWEST_TURNS, _SHARE_OF_TURNS = 4, 0.3
_FEWEST_SPEAKERS, _TURNS_OF_A_SPEAKER = 2, 2
_FEWEST_RECORDS, _SHARE_OF_RECORDS = 3, 0.75


def with_turns(text: str, starts: list[BlockStart]) -> list[BlockStart]:
    """Split paragraphs at the lines where a speaker begins, if the text is a transcript.

    It is one if many lines begin with a label and the labels repeat. If three follow each other time after
    time, they are those of records, and the line with the first is a heading, or the one above it if that
    is the name of most.
    """
    starts = _with_heads(text, starts)
    without_heads = MAIL_HEAD.sub(lambda head: " " * len(head[0]), text)
    labels = [(match.end("indent"), speaker(match)) for match in TURN.finditer(without_heads)]
    n_paragraphs = sum(kind in ("paragraph", "heading", "item") for _, kind, _ in starts)
    repeated = [n for n in Counter(name for _, name in labels).values() if n >= _TURNS_OF_A_SPEAKER]
    n_turns = sum(repeated)
    is_transcript = n_turns >= max(_FEWEST_TURNS, _SHARE_OF_TURNS * n_paragraphs, 2 * len(repeated))
    if len(repeated) < _FEWEST_SPEAKERS or not is_transcript or 2 * n_turns < len(labels):
        return starts
    blocks = {block[0]: block for block in starts}
    apart = [name for at, name in labels if text[max(at - 99, 0) : at].rstrip(" \t")[-2:] in ("", "\n\n")]
    first = _first_of_records([name for _, name in labels], apart, len(_SENTENCE.findall(text)))
    indents = [indent_of(text[text.rfind("\n", 0, at) + 1 : at + 1]) for at, name in labels if name == first]
    if indents and min(indents) > median(line.indent for line in read_lines(text)):
        return starts  # examples within a text
    begins = dict[int, int]()
    for place, name in labels:
        row = max(bisect_right(starts, place, key=itemgetter(0)) - 1, 0)
        begin, kind, _ = starts[row]
        is_titled = kind == "heading" and "\n" in text[begin:place].lstrip()
        above, kind_above, _ = starts[max(row - 1, 0)]
        is_close = kind_above == "heading" and "\n\n" not in text[above:place]
        is_right = indent_of(text[above:begin]) < indent_of(text[begin : place + 1])
        if after_space(text, begin) >= place and (is_close or is_right):
            begin = above
        if kind not in ("code", "table") and not is_titled and first in ("", name):
            begins[place] = begin
    named = {place for place, begin in begins.items() if first and _is_name(text, begin, place)}
    for place, begin in begins.items():
        start, end = begin if _BEFORE.fullmatch(text, begin, place) else place, text.find("\n", place) + 1
        if place in named and 2 * len(named) > len(begins):
            start, end = begin, text.rfind("\n", 0, place) + 1
        blocks[start] = (start, "heading" if first else "turn", _LEVEL_OF_TITLES * bool(first))
        if first and end and text[end : end + 1] != "\n":
            blocks.setdefault(end, (end, "paragraph", 0))
    return sorted(blocks.values()) if first else list(_with_titles(text, sorted(blocks.values())))


def _is_name(text: str, begin: int, end: int) -> bool:
    """Whether what stands above a label is one short line without a stop."""
    words = text[begin:end].strip() if end - begin <= 2 * LONGEST_HEADING else ""
    return 0 < len(words) <= LONGEST_HEADING and "\n" not in words and not words.endswith(STOP)


def _with_heads(text: str, starts: list[BlockStart]) -> list[BlockStart]:
    """Make one heading of the short lines above each of several texts: an author, perhaps more, and a date.

    There is no text above the first, and one below the last: texts may be signed below in the same way.
    """
    signs = ""
    for (start, kind, _), (end, *_) in zip(starts, (*starts[1:], (len(text), "", 0)), strict=False):
        lines = _SHORT.fullmatch(text, start, end) if kind == "paragraph" else None
        signs += ("d" if _DATED.search(lines[1]) else "s") if lines else kind[0]
    runs = [*_ABOVE_TEXT.finditer(signs)]
    n_above = min((len(run[1]) for run in runs), default=0)
    place = {run.end(1) - n: n_above - n for run in runs for n in range(n_above + 1)}
    is_signed = signs.rstrip("s").endswith("d") or signs[: min(place, default=0)][-1:] not in "hsd"
    if is_signed or len(runs) < _FEWEST_RECORDS:
        return starts
    rows = (row for row in range(len(starts)) if not place.get(row))
    return [(starts[row][0], "heading", _LEVEL_OF_TITLES) if row in place else starts[row] for row in rows]


def _first_of_records(names: Sequence[str], apart: Sequence[str], n_sentences: int) -> str:
    """The label that begins records with prose, if three come in one order: it is most often apart; or ""."""
    all_of, n_apart = Counter(names), Counter(apart)
    for labels, n_records in Counter(zip(names, names[1:], names[2:], strict=False)).most_common(1):
        fewest = max(_FEWEST_RECORDS, _SHARE_OF_RECORDS * all_of[labels[0]])
        if n_sentences >= n_records >= fewest and len({*labels}) == len(labels):
            return max(all_of, key=lambda name: (all_of[name] >= fewest, n_apart[name] / all_of[name]))
    return ""


def _with_titles(text: str, starts: list[BlockStart]) -> Iterator[BlockStart]:
    """The blocks of a transcript; lines between turns become headings of the turns below them."""
    for block, (end, below, _) in zip(starts, (*starts[1:], (len(text), "", 0)), strict=False):
        is_above = (block[1], below) == ("paragraph", "turn") and not COLUMNS.match(text, block[0], end)
        is_title = is_above and _TITLE.fullmatch(text, block[0], end)
        yield (block[0], "heading", _LEVEL_OF_TITLES) if is_title else block


_SENTENCE = re.compile(r"(?m)[^\W\d_]{2}[.!?](?:[ \t]*$|[ \t]+[^\W\d_a-z])|[。！？]")
_LEVEL_OF_TITLES = 20
_SHORT = re.compile(r"(?:([^\n]{1,60})(?<![.!?…。！？,;:])(?:\n++|\Z)){1,5}\s*+")
_DATED = re.compile(r"(?<!\d)\d\d?(?::\d\d|\D{1,14}(?:19|20)\d\d|\d\d[-/年]\d\d?(?!\d)| \w{3,7} ago)")
_ABOVE_TEXT = re.compile(r"(?<![sd])([sd]*)d(?=s*[^hsd])")
"""One to five short lines; a date; and, by signs of blocks, such lines with a date above a text."""
_TITLE = re.compile(
    r"[ \t]*[^\W\d_a-z][^\n]{0,198}(?:[^\s.,;:!?。，；：！？…\-–—]|\b(?:etc|Co|Inc|Ltd|Jr|Sr)\.)"
    r"[ \t]*(?:\n[ \t]*){2,}"
)
"""A line without a full stop, unless an abbreviation has one, with a blank line after it."""
_FEWEST_ENTRIES, _SHARE_OF_ENTRIES, _LONGEST_NAME = 3, 0.8, 4
"""Beside each other; of the lines that may begin one; and signs of full width of a name, or two words."""
_WORD = re.compile(rf"{WIDE.pattern}|\d+|[^\W\d]\w*")
_END_WITHIN = re.compile(rf"(?<=[^\s.])(?<!\b[A-ZÀ-ÞΑ-ΩА-Я])(?:[{''.join(STOPS)}։](?=\s+\S)|[。！？](?=\S))")


def with_entries(text: str, starts: Sequence[BlockStart]) -> list[BlockStart]:
    """Make items of the entries of a log, a diary or ads: they begin alike and have several sentences."""
    places, blocks = [start for start, _, _ in starts], {block[0]: block for block in starts}
    for kind, group in groupby(read_lines(text), lambda one: starts[bisect_right(places, one[0]) - 1][1]):
        begun = _entries([*group]) if kind == "paragraph" else []
        blocks |= {line.start: (line.start, "item", 1) for line in begun}
    return sorted(blocks.values())


def _entries(lines: Sequence[Line]) -> list[Line]:
    """The lines that begin entries: most of those between them, or of those after the end of a sentence."""
    ends = [one.words.endswith((*STOPS, *':：)"”»')) or one.words[-1].isdigit() for one in lines]
    after_end = [one for one, is_end in zip(lines, [True, *ends], strict=False) if is_end or one.after_blank]
    for some in (lines, after_end):
        kinds = [_kind_of_entry(line.words) for line in some]
        for kind, n in Counter(filter(None, kinds)).most_common(1):
            first, last = kinds.index(kind), len(kinds) - kinds[::-1].index(kind)
            n_long = sum(_END_WITHIN.search(line.words) is not None for line in some[first:last])
            if 2 * n_long >= last - first and n >= max(_FEWEST_ENTRIES, _SHARE_OF_ENTRIES * (last - first)):
                return [line for line, its in zip(some, kinds, strict=True) if its == kind]
    return []


def _kind_of_entry(words: str) -> str:
    """How an entry begins: with a number or one word before it, a word in capitals, or a name and a stop."""
    first, second = (*_WORD.findall(words[:80])[:2], "", "")[:2]
    if first.isdecimal() or second.isdecimal() or (len(first) > 1 and first.isupper()):
        return "number" if first.isdecimal() else "dated" if second.isdecimal() else "capitals"
    end = _END_WITHIN.search(words[:80]) if words[0].isalnum() and not words[0].islower() else None
    name = words[: end.start()] if end else ""
    return "name" if end and name.count(" ") < 2 and len(WIDE.findall(name)) <= _LONGEST_NAME else ""
