"""The lines of a plain text: where they stand, how they end, and which of them are titles that count."""

import re
from collections import Counter
from collections.abc import Collection, Sequence
from itertools import pairwise
from statistics import median
from typing import NamedTuple
from unicodedata import normalize

from precise_rag.structure.marks import (
    ADORNMENT,
    CAPTION,
    COUNTED,
    CUE,
    ITEM,
    STOPS,
    counted_word,
    ends_sentence,
    in_columns,
    indent_of,
)
from precise_rag.structure.running import PAGE_LINE, without_page_lines
from precise_rag.types import Span

LONGEST_HEADING, LEVEL_OF_NUMBERS, _NARROWEST = 100, 9, 40
_FEWEST_TITLES, _LONG_SECTION = 3, 300
"""Titles that may end in a full stop, and characters of most of their sections."""
STOP, ASKING = (*STOPS, *",;:，；：、"), "?？!"
"""What no heading ends in, and which of it one with a number may."""
_TWO_SENTENCES = re.compile(
    r"(?<!\w)(?![IVXLC]{1,7}\.)\w*[^\W\d]{2}[.!?][\"'”’»)\]]{0,3} +[\"'“‘«(\[]{0,3}[^\W\da-z]|[?!,][\"”’»]"
)
"""Also after a word, but not after the number in "Chapter II. Fees"."""
_FULL_STOP_WITHIN = re.compile(r"[。！？｡][^\s。」』”’）)]")
_GAP = re.compile(r" {2,}")
_PARTS = re.compile(r"(\d{1,3}(?:\.\d{1,3}){0,4})[.)]?[ \t]+(?=[^\W\d_a-z])")
LONG_NUMBER = re.compile(r"\d+(?:\.\d+)+")
_ITEM_NUMBER = re.compile(r"\(?((?:\d{1,3}\.){0,4})(\d{1,3})[.)．）、]")
_ORDINALS = str.maketrans("", "", "ªº")
_FIRST_NUMBERS, _BORDERS = {"1", "I", "一"}, {*"%~_&"}


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
    """Return the lines of a text that are not blank, nor one sign as between fortunes. A form feed is a page.

    No blank line is before a caption in which a sentence goes on, if some end.
    """
    lines, start = [], 0
    parts = (" " * len(line) if line.strip() in _BORDERS else line for line in text.split("\n"))
    every = ["", *parts, ""]
    for before, line, after in zip(every, every[1:], every[2:], strict=False):
        if words := line.strip():
            is_apart = [not one.strip() or page[:1] == "\f" for one, page in ((before, line), (after, after))]
            lines.append(Line(start + (line[0] == "\f"), words, indent_of(line), *is_apart))
        start += len(line) + 1
    cues = [number for number, line in enumerate(lines) if CUE.match(text, line.start)]
    n_ends = sum(ends_sentence(one.words) or has_two_sentences(one.words) for one in lines if cues)
    if 5 * n_ends > len(cues):
        for number in cues[1:]:
            lines[number] = lines[number]._replace(after_blank=ends_sentence(lines[number - 1].words))
    return lines


def without_pages(text: str, lines: Sequence[Line]) -> list[Line]:
    """Return the lines without heads and feet of pages. A paragraph ends there."""
    ends = [*(line.start for line in lines[1:]), len(text)]
    spans = [Span(line.start, end) for line, end in zip(lines, ends, strict=False)]
    starts = {start for start, _ in without_page_lines(text, spans)}
    stays = [line.start in starts or not (line.after_blank and line.before_blank) for line in lines]
    kept = [n for n, line in enumerate(lines) if stays[n] and not PAGE_LINE.fullmatch(line.words)]
    pairs = ((above, lines[n], n) for above, n in pairwise([-1, *kept]))
    return [line._replace(after_blank=line.after_blank or n > above + 1) for above, line, n in pairs]


def without_stops(lines: Sequence[Line]) -> list[Line]:
    """Return the lines; titles that count up, stand apart and have long text below lose their full stops.

    They are three at least: "4. Tenant's Duties.". Steps such as "4. Open the lid." have less text below.
    """
    runs, open_runs = list[list[int]](), dict[tuple[str, int], list[int]]()
    for number, (line, below) in enumerate(pairwise(lines)):
        counted, parts = COUNTED.match(line.words), _PARTS.match(line.words)
        digits = (counted["number"] or "") if counted else parts[1] if parts else ""
        first, _, last = digits.rpartition(".")
        is_apart = line.after_blank and line.before_blank and (first or below.indent <= line.indent)
        is_above = is_apart and not (ITEM.match(below.words) or COUNTED.match(below.words))
        title = line._replace(words=line.words.removesuffix("."))
        if last.isdecimal() and title != line and is_above and _may_be_title([title, below], 0):
            word = f"{counted_word(counted) if counted else ''} {first}"
            run = open_runs.pop((word, int(last) - 1), [])
            runs += [] if run else [run]
            run.append(number)
            open_runs[word, int(last)] = run
    bare = list(lines)
    for run in runs:
        lengths = [lines[after].start - lines[number].start for number, after in pairwise(run)]
        if len(run) >= _FEWEST_TITLES and median(lengths) >= _LONG_SECTION:
            for number in run:
                bare[number] = lines[number]._replace(words=lines[number].words[:-1])
    return bare


def edges_of(line: Line) -> set[int]:
    """The columns where cells begin, with a minus those where they end, of the last a number; 0: by tabs."""
    words = in_columns(" " * line.indent + line.words).expandtabs(8)
    gaps = [gap.span() for gap in _GAP.finditer(words, line.indent)]
    by_tab = {0} if "\t" in line.words and not line.indent else set()
    last = words[gaps[-1][1] :] if gaps else ""
    ends = {-len(words)} if last[:1].isdigit() and last.count(" ") < 2 else set[int]()
    return by_tab.union(ends, *((-start, end) for start, end in gaps))


def has_two_sentences(words: str) -> bool:
    """Whether a sentence ends within a line, after its first word."""
    return bool(_TWO_SENTENCES.search(words, len(words.split()[0])) or _FULL_STOP_WITHIN.search(words))


def has_case(words: str) -> bool:
    """Whether nearly all letters of a line are of scripts that have capitals."""
    letters = [sign for sign in words if sign.isalpha()]
    return sum(sign.lower() != sign.upper() for sign in letters) >= 0.9 * len(letters)


def in_capitals(words: str) -> bool:
    """Whether all letters of a line that has some are capitals, but for those of "1.ª"."""
    return words.translate(_ORDINALS).isupper() and has_case(words)


def counted_titles(lines: Sequence[Line]) -> dict[int, int]:
    """Return the levels of titles that begin with the same word and different numbers, by their places.

    The word that comes first is the outermost, but for one below which another begins anew, as "Section 1"
    below "Amendment 13". Lines that follow each other are clauses or a table of contents, no titles.
    """
    runs: dict[str, dict[int, str]] = {}
    words: dict[int, str] = {}  # of all lines of a series, of which those that may be titles are in runs
    for number, line in enumerate(lines):
        if (match := COUNTED.match(line.words)) and not CAPTION.match(line.words):
            words[number] = counted_word(match)
            is_below_other = words.get(number - 1, words[number]) != words[number]
            if line.after_blank or is_below_other or ends_sentence(lines[number - 1].words):
                value = normalize("NFKC", match["number"] or match["counted"] or match["first"])
                runs.setdefault(words[number], {})[number] = value
    alone = [{n for n in run if words.get(n + 1) != word} for word, run in runs.items()]
    both = zip(runs.values(), alone, strict=True)
    counting = [own for run, own in both if _counts(run.values()) and 2 * len(own) >= len(run)]
    depths = [*range(len(counting))]
    run_of = {number: depth for depth, run in enumerate(counting) for number in run}
    values = {number: value for run in runs.values() for number, value in run.items()}
    pairs = (pair for pair in pairwise(sorted(run_of)) if values[pair[1]] in _FIRST_NUMBERS)
    begun = Counter((run_of[above], run_of[below]) for above, below in pairs)
    for (above, below), n_times in sorted(begun.items()):
        if below < above and n_times > 1:
            depths[above] = min(depths[above], max(depths[below] - 1, 0))
    titles = (number for run in counting for number in _titles_of(lines, run))
    return {number: LEVEL_OF_NUMBERS + depths[run_of[number]] for number in titles}


def _counts(numbers: Collection[str]) -> bool:
    """Whether numbers differ, and two follow each other unless some are not plain: no "100 m", "400 m"."""
    n_numbers, plain = len({*numbers}), {int(number) for number in numbers if number.isdecimal()}
    return n_numbers > 1 and (len(plain) < n_numbers or any(number + 1 in plain for number in plain))


def _titles_of(lines: Sequence[Line], run: Collection[int]) -> list[int]:
    """The titles of a run of lines that count up: if less than half are titles, those that stand apart."""
    are_titles = 2 * sum(_is_title_line(lines, number) for number in run) >= len(run)
    return [n for n in run if (are_titles or lines[n].before_blank) and _may_be_title(lines, n)]


def _may_be_title(lines: Sequence[Line], number: int) -> bool:
    """Whether a line that begins with a number may be a title by its length and its end.

    A full stop right above its text is not that of a sentence, but for a step such as "Day 2: Go home."
    """
    line, *below = lines[number : number + 2]
    counted = COUNTED.match(line.words)
    is_step = counted is not None and line.words.startswith((":", "："), counted.end())
    keeps_stop = line.before_blank or line.words.count(" ") > 8 or is_step
    words = line.words if keeps_stop else line.words.removesuffix(".")
    if not below or len(words) > LONGEST_HEADING or ADORNMENT.match(below[0].words):
        return False
    return not (words.rstrip(ASKING).endswith(STOP) or has_two_sentences(words))


def _is_title_line(lines: Sequence[Line], number: int) -> bool:
    """Whether a line that begins with a number is a title by its words and the line below it."""
    if not _may_be_title(lines, number):
        return False
    line, below = lines[number], lines[number + 1]
    has_stop_or_parts = line.words.endswith(".") or LONG_NUMBER.match(line.words)
    is_above_item = not has_stop_or_parts and (ITEM.match(below.words) or LONG_NUMBER.match(below.words))
    is_short = line.words[0].isdigit() and line.end < _NARROWEST and ends_sentence(below.words)
    is_above = is_short or COUNTED.fullmatch(line.words) is not None or fits_above(line, below)
    return line.before_blank or bool(is_above_item) or (is_above and not below.words[0].islower())


def numbered_titles(lines: Sequence[Line]) -> set[int]:
    """Return the places of titles such as "2.2. Oil" right above text.

    If one number has two parts, all such may be. If none has, they count up with one apart above text.
    """
    parts = [(match[1].split(".") if (match := _PARTS.match(line.words)) else []) for line in lines]
    firsts, titles = set[int](), set[int]()
    for number, (line, now) in enumerate(zip(lines, parts, strict=True)):
        is_below_title = number - 1 in firsts and parts[number - 1] == now[: len(parts[number - 1])]
        if now and (line.after_blank or is_below_title or ends_sentence(lines[number - 1].words)):
            firsts.add(number)
    for number in sorted(firsts, reverse=True):
        is_above_text = _is_title_line(lines, number) and not parts[number + 1]
        if number + 1 in titles or (is_above_text and lines[number + 1].indent <= lines[number].indent):
            titles.add(number)
    if any(len(parts[number]) > 1 for number in titles):
        pairs = enumerate(zip(parts, parts[1:], lines[1:], strict=False))
        above = [n for n, (now, then, line) in pairs if now[1:] and not (then or line.words[0].islower())]
        above = [n for n in above if n in firsts or not parts[n - 1]]
        are_titles = 2 * sum(_is_title_line(lines, n) for n in above) >= len(above)
        return titles.union(n for n in above if are_titles and _may_be_title(lines, n))
    lasts = sorted(number for number in titles if number + 1 not in titles)
    run_of = {number: int(parts[number][0]) - place for place, number in enumerate(lasts)}
    apart = (one for one in lasts if lines[one].before_blank and not ITEM.match(lines[one + 1].words))
    runs = {run_of[number] for number in apart if lines[number].words[-1] not in ASKING}
    return {number for number, run in run_of.items() if run in runs}


def wrapped_numbers(lines: Sequence[Line]) -> set[int]:
    """Return the places of lines that only begin with a number since it did not fit on the line above.

    No line of the text begins with the number before it or after it.
    """
    items = [_ITEM_NUMBER.match(line.words) for line in lines]
    numbers = {(item[1], int(item[2])) for item in items if item}
    wrapped = set[int]()
    for number, (above, line, item) in enumerate(zip(lines, lines[1:], items[1:], strict=False), 1):
        is_within = not (line.after_blank or above.words.endswith(STOP) or ends_sentence(above.words))
        is_dated = item and item[1] and items[number - 1]  # so is the line above: "10.02. Rent"
        if item and is_within and above.end >= _NARROWEST and not (is_dated or fits_above(above, line)):
            first, last = item[1], int(item[2])
            if last > 1 and numbers.isdisjoint({(first, last - 1), (first, last + 1)}):
                wrapped.add(number)
    return wrapped


def fits_above(line: Line, below: Line) -> bool:
    """Whether the first word of the line below would have fitted on a line."""
    first, two = below.words.split()[0], below.words[:2]
    return line.end + (len(first) if in_columns(two) == two else 2) < below.end
