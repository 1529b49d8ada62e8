"""The lines of a plain text: where they stand, how they end, and which of them are titles that count."""

import re
from collections.abc import Sequence
from typing import NamedTuple
from unicodedata import normalize

from precise_rag.structure.marks import CAPTION, COUNTED, STOPS, WIDE, ends_sentence, in_columns, indent_of

LONGEST_HEADING, LEVEL_OF_NUMBERS = 100, 9
STOP = (*STOPS, *",;:，；：、")
"""What no heading ends in."""
_TWO_SENTENCES = re.compile(r"[^\W\d]{2}[.!?][\"'”’»)\]]{0,3} +[\"'“‘«(\[]{0,3}[^\W\da-z]|[?!,][\"”’»]")
_FULL_STOP_WITHIN = re.compile(r"[。！？｡][^\s。」』”’）)]")
_GAP = re.compile(r" {2,}")


class Line(NamedTuple):
    """A line that is not blank.

    start: offset in the text. indent: columns before its words. after_blank: whether the line before is
    blank or on another page, or there is none. before_blank: the same of the line after.
    """

    start: int
    words: str
    indent: int
    after_blank: bool
    before_blank: bool

    @property
    def end(self) -> int:
        """Columns up to the end of its words."""
        return self.indent + len(in_columns(self.words))


def read_lines(text: str) -> list[Line]:
    """Return the lines of a text that are not blank."""
    lines, start = [], 0
    every = ["", *text.split("\n"), ""]
    for before, line, after in zip(every, every[1:], every[2:], strict=False):
        if words := line.strip():
            pages = (before, line), (after, after)  # a form feed begins a page
            is_apart = [not beside.strip() or page[:1] == "\f" for beside, page in pages]
            lines.append(Line(start + (line[0] == "\f"), words, indent_of(line), *is_apart))
        start += len(line) + 1
    return lines


def edges_of(line: Line) -> set[int]:
    """The columns where cells begin, and with a minus those where they end; 0 where tabs part them."""
    words = in_columns(" " * line.indent + line.words).expandtabs(8)
    gaps = [gap.span() for gap in _GAP.finditer(words, line.indent)]
    by_tab = {0} if "\t" in line.words and not line.indent else set()
    return by_tab.union(*((-start, end) for start, end in gaps))


def has_two_sentences(words: str) -> bool:
    """Whether a sentence ends within a line, after its first word."""
    return bool(_TWO_SENTENCES.search(words, len(words.split()[0])) or _FULL_STOP_WITHIN.search(words))


def has_case(words: str) -> bool:
    """Whether nearly all letters of a line are of scripts that have capitals."""
    letters = [sign for sign in words if sign.isalpha()]
    return sum(sign.lower() != sign.upper() for sign in letters) >= 0.9 * len(letters)


def counted_titles(lines: Sequence[Line]) -> dict[int, int]:
    """Return the levels of titles that begin with the same word and different numbers, by their places.

    The word that comes first is the outermost. Lines that follow each other are clauses or a table of
    contents, no titles.
    """
    runs: dict[str, dict[int, str]] = {}
    for number, line in enumerate(lines):
        match = COUNTED.match(line.words)
        is_first = line.after_blank or ends_sentence(lines[number - 1].words)
        if match and is_first and not CAPTION.match(line.words):
            word = f"{match['word'] or ''}{match['kind'] or ''}".strip().casefold()
            runs.setdefault(word, {})[number] = normalize("NFKC", match["number"] or match["counted"])
    counting = [
        {number for number in run if number + 1 not in run}
        for run in runs.values()
        if len(set(run.values())) > 1 and 2 * sum(number + 1 in run for number in run) <= len(run)
    ]
    return {
        number: LEVEL_OF_NUMBERS + depth
        for depth, run in enumerate(counting)
        for number in run
        if _is_title_line(lines, number)
    }


def _is_title_line(lines: Sequence[Line], number: int) -> bool:
    """Whether a line is a title by its length, its end and the line below it."""
    line, below = lines[number], lines[number + 1 : number + 2]
    words = line.words if line.before_blank or line.words.count(" ") > 8 else line.words.removesuffix(".")
    is_sentence = words.endswith(STOP) or has_two_sentences(words)
    if is_sentence or len(words) > LONGEST_HEADING or not below:
        return False
    return line.before_blank or (fits_above(line, below[0]) and not below[0].words[0].islower())


def fits_above(line: Line, below: Line) -> bool:
    """Whether the first word of the line below would have fitted on a line."""
    first = len(below.words.split()[0])
    return line.end + (2 if WIDE.match(below.words) else first) < below.end
