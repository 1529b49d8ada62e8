"""Stretches of consecutive sentences around the sentences that were found."""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, chain, pairwise, starmap, takewhile

from precise_rag.protocols import SentenceSplitter
from precise_rag.sentences.splitters import default_sentence_splitter, split_structured
from precise_rag.sentences.words import has_words, trimmed
from precise_rag.structure import heading_title, read_structure
from precise_rag.structure.marks import FIELD, TIME, ends_sentence, indent_of
from precise_rag.structure.running import without_page_lines
from precise_rag.titles import below, titles_above, titles_at
from precise_rag.tokens import estimate_tokens
from precise_rag.types import Candidate, Stretch

_KIND = re.compile(
    r"(?:BEGIN|END):\w{1,40}|</?\w{1,40}|(\d) [@A-Z]\S{0,20}"
    r"|(?:[-*+•|!]|\(?(?:\d{1,4}|[a-zA-Z])[.)])(?=[ \t])|[^\W\d][^:=;\t\n]{0,40}?(?:[:=;\t]|  )|[^\n]{0,40}"
)
"""How a line begins: with an opening, a tag, a level and a name, a mark, a label, or any words."""
_OPENS = re.compile(r"BEGIN:|<\w[^<>]*>\Z|\[\[|[^\w\s</}\])]{1,40}\Z")
_CLOSES = re.compile(r"END:|</|\|?[}\])]")
_CUT = re.compile(r"(?:[,;{[]|\A[^{]*\})\Z")
_FEWEST, _MOST, _ALIKE = 3, 40, 0.8
"""Records that begin alike, and kinds of lines in each; lines of one; and the share of lines alike."""


def split_into_sentences(piece: Candidate, splitter: SentenceSplitter | None = None) -> Stretch:
    """Split a candidate of any length into its sentences, without the white space and the rules around them.

    splitter: splits the text; default: `load_sentence_splitter()`.
    The sentences have the piece's score, scale, scores, passage and metadata. Headings in the piece are above
    the sentences that follow them, below what is above the piece. Offsets count from `piece.start`, also if
    the piece's text is not exactly that of a document. The tokens are estimated.
    """
    structure = read_structure(piece.text)
    spans = split_structured(piece.text, structure, splitter or default_sentence_splitter())
    kept = [trimmed(piece.text, *span) for span in without_page_lines(piece.text, spans)]
    kept = [span for span in kept if has_words(piece.text[slice(*span)])]
    places = [start for start, _ in kept]
    titles = titles_at(titles_above(piece), piece.metadata, piece.text, structure, places)
    sentences = [
        replace(
            piece,
            start=piece.start + start,
            end=piece.start + end,
            text=piece.text[start:end],
            n_tokens=estimate_tokens(piece.text[start:end]),
            above=above,
        )
        for (start, end), above in zip(kept, titles, strict=True)
    ]
    if not sentences:
        return Stretch("", ())
    first, last = sentences[0].start - piece.start, sentences[-1].end - piece.start
    return Stretch(piece.text[first:last], tuple(sentences))


def by_section(stretch: Stretch) -> Iterator[tuple[int, Stretch]]:
    """Yield the parts of a stretch, each from a heading or a record on, with the row of its first sentence.

    A heading is a sentence whose words are the last title above the next sentence (`Candidate.above`). For
    records see `records`.
    """
    sentences, first = stretch.sentences, 0
    begins = {row for row, pair in enumerate(pairwise(sentences)) if row and _stands_above(*pair)}
    begins.update(record.start for record in records(stretch) if record.start)
    for end in (*sorted(begins), len(sentences)):
        part = sentences[first:end]
        start, stop = part[0].start - sentences[0].start, part[-1].end - sentences[0].start
        yield first, Stretch(stretch.text[start:stop], part)
        first = end


def records(stretch: Stretch) -> list[range]:
    """Return the rows of each record: lines of up to 120 characters, with a field or without an end mark.

    It has three fields of different names, "Name: Ann", or there is a blank line between it and another one.
    And the rows of each entry of a log that has lines below the one with a time, such as those of an error.
    And those of lines that begin alike again and again, see `_repeated`.
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
    runs = [*starmap(range, pairwise((0, *breaks, len(sentences))))]
    beside = [two for two in pairwise(runs) if min(map(len, two)) > 1 and gaps[two[0][-1]].count("\n") > 1]
    alone = [run for run in runs if 2 < len(run) == len({*names[run.start : run.stop]} - {""})]
    is_timed = [TIME.match(one.text) is not None for one in sentences]
    begins = (row for row, gap in enumerate(gaps, 1) if is_timed[row] or gap.count("\n") > 1)
    entries = starmap(range, pairwise((0, *begins, len(sentences))))
    of_log = (run for run in entries if sum(is_timed) > 2 and is_timed[run.start] and len(run) > 1)
    found = {run.start: run for run in (*chain.from_iterable(beside), *alone, *of_log, *_repeated(stretch))}
    return [found[start] for start in sorted(found)]


def _repeated(stretch: Stretch) -> Iterator[range]:
    """The rows of the records in each run of lines without a blank one, see `_begins`."""
    lines, starts = stretch.text.split("\n"), [one.start for one in stretch.sentences]
    places = [*accumulate((len(line) + 1 for line in lines), initial=starts[0])]
    blank = (number for number, line in enumerate(lines, 1) if not line.strip())
    for first, end in pairwise((0, *blank, len(lines) + 1)):
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


def begins_with_heading(stretch: Stretch) -> bool:
    """Check whether the first sentence is a heading, and another one follows."""
    return len(stretch.sentences) > 1 and _stands_above(*stretch.sentences[:2])


def _stands_above(sentence: Candidate, following: Candidate) -> bool:
    above = following.above[-1:]
    return bool(above) and above == below((), heading_title(sentence.text))
