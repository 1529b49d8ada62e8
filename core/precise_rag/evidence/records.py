"""Records: lines of a text that belong together, such as the fields of a person, or an entry of a log."""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import accumulate, chain, pairwise, starmap, takewhile

from precise_rag.sentences.trimming import has_words
from precise_rag.structure.marks import FIELD, TIME, ends_in_colon, ends_sentence, indent_of
from precise_rag.types import Stretch

_KIND = re.compile(
    r"(?:BEGIN|END):\w{1,40}|</?\w{1,40}|(\d) [@A-Z]\S{0,20}"
    r"|(?:[-*+•|!]|\(?(?:\d{1,4}|[a-zA-Z])[.)])(?=[ \t])|[^\W\d][^:=;\t\n]{0,40}?(?:[:=;\t]|  )|[^\n]{0,40}"
)
"""How a line begins: with an opening, a tag, a level and a name, a mark, a label, or any words."""
_OPENS = re.compile(r"BEGIN:|<\w[^<>]*>\Z|\[\[|[^\w\s</}\])]{1,40}\Z")
_CLOSES = re.compile(r"END:|</|\|?[}\])]")
_CUT = re.compile(r"(?:[,;{[]|\A[^{]*\})\Z")
_BLANK = re.compile(r"\n\s*\n")
_FEWEST, _MOST, _ALIKE = 3, 40, 0.8
"""Records that begin alike, and kinds of lines in each; lines of one; and the share of lines alike."""


def records(stretch: Stretch) -> list[range]:
    """Return the rows of each record: lines of up to 120 characters, with a field or without an end mark.

    It has three fields of different names, "Name: Ann", perhaps below one line that is none, or there is a
    blank line between it and another one.
    And the rows of each entry of a log, from a time or a compiler's place in a file on; a blank line ends it,
    but not above a line that ends in a colon, as in a traceback of two errors.
    And those of lines elsewhere that begin alike again and again, see `_repeated`.
    """
    sentences, origin = stretch.sentences, stretch.sentences[0].start
    names = [name[0] if (name := FIELD.match(one.text)) else "" for one in sentences]
    is_line = [
        len(text) <= 120 and not _CUT.search(text) and bool(name or not ends_sentence(text))
        for name, text in zip(names, (one.text for one in sentences), strict=True)
    ]
    gaps = [stretch.text[one.end - origin : two.start - origin] for one, two in pairwise(sentences)]
    joined = [gap.count("\n") == 1 and all(is_line[row : row + 2]) for row, gap in enumerate(gaps)]
    breaks = (row for row, is_joined in enumerate(joined, 1) if not is_joined)
    lists = [*starmap(range, pairwise((0, *breaks, len(sentences))))]
    beside = [two for two in pairwise(lists) if min(map(len, two)) > 1 and gaps[two[0][-1]].count("\n") > 1]
    alone = [r for r in lists if 2 < len(r) - (not names[r.start]) == len({*names[r.start : r.stop]} - {""})]
    texts = [one.text.lstrip() for one in sentences]
    is_timed = [TIME.match(text) is not None and " note: " not in text for text in texts]
    is_timed = [one or below[:4] == "--> " for one, below in zip(is_timed, (*texts[1:], ""), strict=True)]
    ends = (row for row, gap in enumerate(gaps, 1) if _BLANK.search(gap) and not ends_in_colon(texts[row]))
    begins = {0, *ends, *(row for row, is_one in enumerate(is_timed) if is_one), len(sentences)}
    runs = starmap(range, pairwise(sorted(begins)))
    entries = [run for run in runs if is_timed[run.start]] if sum(is_timed) > 2 else []
    of_log = {*chain.from_iterable(entries)}
    others = (*chain.from_iterable(beside), *alone, *_repeated(stretch))
    found = {run.start: run for run in others if of_log.isdisjoint(run)}
    found |= {run.start: run for run in entries if len(run) > 1}
    return [found[start] for start in sorted(found)]


def _repeated(stretch: Stretch) -> Iterator[range]:
    """The rows of the records in each run of lines without a blank one, see `_begins`."""
    lines, starts = stretch.text.split("\n"), [one.start for one in stretch.sentences]
    places = [*accumulate((len(line) + 1 for line in lines), initial=starts[0])]
    blank = (number for number, line in enumerate(lines, 1) if not line.strip())
    for first, end in pairwise((0, *blank, len(lines) + 1)):
        if end - first <= 2 * _FEWEST + 1:
            continue
        begins = _begins(lines[first : end - 1], is_whole=first > 0 or starts[0] == 0)
        rows = [bisect_left(starts, places[first + line]) for line in begins]
        yield from (range(*pair) for pair in pairwise(rows) if pair[1] > pair[0] + 1)


def _begins(lines: Sequence[str], is_whole: bool) -> list[int]:
    """The lines with which the records of a run begin, and the end of the last one; none without records.

    They have one indent and begin alike, see `_KIND`, as nearly all lines right below them do. If some lines
    close something, one stands above. Most lines of a record are of kinds that most records have.
    is_whole: whether the run begins here. If not, the kind opens something, or alone is the least indented.
    """
    begun = [(line, _KIND.match(line.strip())) for line in lines]
    kinds = [(int(one[1] or indent_of(line)), re.sub(r"\d+", "0", one[0])) for line, one in begun if one]
    counts = Counter(kinds)
    kinds = [one if counts[one] >= _FEWEST else (one[0], "") for one in kinds]
    closing = {one for one in kinds if _CLOSES.match(one[1])}
    several = [one for one, n in Counter(kinds).items() if n >= _FEWEST and one not in closing]
    first, levels = dict(zip(kinds[::-1], lines[::-1], strict=True)), Counter(level for level, _ in several)
    outer = min(levels, default=0) if levels[min(levels, default=0)] == 1 else -1
    opening = [one for one in several if one[0] == outer or _OPENS.match(first[one].strip())]
    for kind in [*opening, *several][: 8 if is_whole else min(8, len(opening))]:
        at = [row for row, one in enumerate(kinds) if one == kind]
        records, sizes = list(pairwise(at)), [after - row for row, after in pairwise(at)]
        shared = Counter(chain.from_iterable({*kinds[row:after]} for row, after in records))
        usual = {kind, *(one for one in shared if one[1] and 2 * shared[one] > len(sizes))}
        below = Counter(kinds[row + 1] for row, _ in records).most_common(1)[0][1] / len(sizes)
        alike = min(below, sum(one in usual for one in kinds[at[0] : at[-1]]) / sum(sizes))
        is_even = len({*sizes}) == 1 and not has_words(first[kind])
        is_long = _FEWEST <= min(sizes) <= max(sizes) <= _MOST and at[0] <= 2 * max(sizes)
        is_closed = not closing or kinds[at[-1] - 1] in closing
        if is_long and is_closed and alike >= _ALIKE and (is_even or len(usual - closing) >= _FEWEST):
            last = takewhile(usual.__contains__, kinds[at[-1] : at[-1] + max(sizes)])
            return [*at, at[-1] + len([*last])]
    return []
