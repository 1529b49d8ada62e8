"""PDF as Markdown: lines, paragraphs and headings, by where signs are on the page and how large they are."""

import re
from bisect import bisect
from collections import Counter, defaultdict
from collections.abc import Iterator
from ctypes import c_double
from itertools import chain, groupby, pairwise
from statistics import median, median_low, mode
from typing import Any, BinaryIO, NamedTuple

_LARGER, _TITLE = 1.15, 200
"""Size of a heading, as a share of the text's, and most characters of one."""
_FULL, _FEWEST_ACROSS = 0.7, 6
"""The share of a column that its lines fill, and of them that do; and lines that are drawn across all."""
_PARTED = re.compile(r"(?<=[^\W\d_])-\n([^\W\d_])")
_LEADERS = re.compile(r"(?: ?\.){5,}")
_SUPERSCRIPT = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_HYPHEN = "\x02"
"""At the end of a line."""
_FAILURES = 100  # of pages in a row, after which no page is tried: a file can say that it has millions
_BULLET = re.compile(r"\A[•●▪■◦○‣·\x7f\uf0a7\uf0b7]\s+")
"""Also what fonts without signs have for one."""


class _PageLine(NamedTuple):
    """A line of a page. size: the height of its signs. left, bottom, right: its place on the page, in points.

    cells: what its wide gaps part, in lines of their own; none without a gap.
    """

    page: int
    text: str
    size: float
    left: float
    bottom: float
    right: float
    cells: tuple["_PageLine", ...]


def pdf_markdown(stream: BinaryIO) -> dict[str, Any]:
    """Return the text of a PDF as Markdown, where its pages begin, and which ones cannot be read.

    Its headings are the lines with larger signs than those that hold a tenth of the text or more.
    """
    from pypdfium2 import PdfDocument, PdfiumError

    document, pages, unread = PdfDocument(stream), list[list[_PageLine]](), list[int]()
    for number in range(len(document)):
        try:
            pages.append(_by_column([*_lines_of(document[number], number)]))
        except PdfiumError:
            pages.append([])
            unread.append(number + 1)
            if unread[-_FAILURES:] == [*range(number + 2 - _FAILURES, number + 2)]:
                break
    sizes: Counter[float] = Counter()
    for line in chain.from_iterable(pages):
        sizes[line.size] += len(line.text)
    common = min(sizes.total() / 10, max(sizes.values(), default=0))
    body = max((size for size, n in sizes.items() if n >= common), default=0.0)
    pairs = [(one, two) for page in pages for one, two in pairwise(page) if one.size > 0.9 * body]
    downs = [down for one, two in pairs if body / 2 < (down := one.bottom - two.bottom) < 3 * body]
    step = median(downs or [body])
    levels = sorted({round(size) for size in sizes if size > _LARGER * body}, reverse=True)
    text, starts = "", []
    last: _PageLine | None = None
    for page in _without_running_lines(pages, step, _LARGER * body):
        starts.append(len(text))
        for size, several in groupby(page, lambda line: round(line.size) * (line.size > _LARGER * body)):
            lines = list(several)
            title = "\n".join(line.text for line in lines)
            gaps = ["   " in one.text for one in lines]
            gaps += [_between(one, two, step) == "   " for one, two in pairwise(lines)]
            is_figure = len(lines) > 3 and len(title) < 10 * len(lines)
            is_table = is_figure or " ..." in title or sum(gaps) > 1
            if size and len(title) <= _TITLE and any(map(str.isalpha, title)) and not is_table:
                title = _PARTED.sub(lambda m: "-" * m[1].isupper() + m[1], title).replace("\n", " ")
                text += "\n\n" * bool(text) + f"{'#' * min(6, levels.index(size) + 1)} {title}"
                last = None
                continue
            for line in lines:
                code = "    " if line.text.startswith("#") else ""  # which is no heading
                text += _between(last, line, step) * bool(text) + code + line.text
                last = line
    return {"text": text, "title": "", "pages": starts, "unread": [f"page {number}" for number in unread]}


def _lines_of(page: Any, number: int) -> Iterator[_PageLine]:
    """Yield the lines of a page. A wide gap, as between the cells of a row, is three spaces."""
    from pypdfium2.raw import FPDFText_GetCharOrigin, FPDFText_GetUnicode

    read, baseline = page.get_textpage(), c_double()
    text, boxes, gaps = "", list[tuple[float, ...]](), list[int]()
    before: tuple[float, ...] = ()
    for place in range(read.count_chars() + 1):
        sign = chr(FPDFText_GetUnicode(read, place)) if place < read.count_chars() else "\n"
        box = None if sign.isspace() or sign == _HYPHEN else read.get_charbox(place, loose=True)
        is_next = box and boxes and box[0] < boxes[-1][0] and 2 * box[3] < boxes[-1][1] + boxes[-1][3]
        if boxes and (is_next or sign in "\r\n" + _HYPHEN):
            size = round(median(box[3] - box[1] for box in boxes), 1)
            text = _LEADERS.sub(" ...", text.strip()) + "-" * (sign == _HYPHEN)
            text = _BULLET.sub("- ", text)
            parts = [boxes[first:last] for first, last in pairwise([0, *gaps, len(boxes)])]
            are_cells = gaps and text.count("   ") == len(gaps) and all(parts)
            named = zip(text.split("   "), parts, strict=True) if are_cells else ()
            cells = tuple(_PageLine(number, words, size, *_place(part), ()) for words, part in named)
            yield _PageLine(number, text, size, *_place(boxes), cells)
            text, boxes, gaps = "", [], []
        if box:
            if boxes and box[0] - boxes[-1][2] > 1.2 * (box[3] - box[1]):
                text = text.rstrip() + ("   " if not sign == text.rstrip()[-1] == "." else "")
                gaps.append(len(boxes))
            FPDFText_GetCharOrigin(read, place, c_double(), baseline)
            boxes.append((*box, baseline.value))
            is_raised = sign.isdecimal() and len(boxes) > 1 and _is_raised(boxes[-1], before)
            text += sign.translate(_SUPERSCRIPT) if is_raised else sign
            before = before if is_raised else boxes[-1]  # the next one may be raised, too
        elif boxes:
            text += " "


def _place(boxes: list[tuple[float, ...]]) -> tuple[float, float, float]:
    """The left end, the bottom and the right end of some signs."""
    lefts, bottoms, rights, *_ = zip(*boxes, strict=True)
    return min(lefts), median(bottoms), max(rights)


def _by_column(lines: list[_PageLine]) -> list[_PageLine]:
    """The lines of a page; of columns that are drawn line by line across all, one column after the other.

    So are many lines with as many wide gaps that end at the same places. Nearly all of them have words up to
    there, some of which go on with a small letter: rows of a table, also above or below, are shorter.
    """
    n_columns = mode([len(line.cells) for line in lines if line.cells] or [0])
    rows = (line.cells for line in lines if len(line.cells) == n_columns)
    starts = [median_low(cell.left for cell in column) - 3 for column in zip(*rows, strict=True)][1:]
    found = {
        line: {bisect(starts, cell.left): cell for cell in line.cells}
        for line in lines
        if line.cells and all(any(0 < cell.left - start < 6 for start in starts) for cell in line.cells[1:])
    }
    places, full = range(len(starts) + 1), set[_PageLine]()
    for place in places:
        column = [row[place] for row in found.values() if place in row]
        wide = _FULL * max((one.right - one.left for one in column), default=0)
        full.update(one for one in column if one.right - one.left > wide and one.text.count(" ") > 2)
    bottoms = [line.bottom for line, row in found.items() if not full.isdisjoint(row.values())]
    top, low = max(bottoms, default=0), min(bottoms, default=0)
    pairs = {line: row for line, row in found.items() if low - 1.5 * line.size < line.bottom <= top}
    for place in places:
        column = [row[place] for row in pairs.values() if place in row]
        n_going_on = sum(one.text[:1].islower() for one in column)
        n_full = len(full.intersection(column))
        if len(column) < _FEWEST_ACROSS or n_full < _FULL * len(column) or 4 * n_going_on < len(column):
            return lines
    n_over, placed = 0, list[tuple[int, int, _PageLine]]()
    for line in lines:
        first, last = bisect(starts, line.left), bisect(starts, line.right)
        row = pairs.get(line, {first if first == last else -1: line})
        n_over += -1 in row
        placed += [(n_over, place, part) for place, part in row.items()]
    return [part for _, _, part in sorted(placed, key=lambda one: one[:2])]


def _is_raised(box: tuple[float, ...], before: tuple[float, ...]) -> bool:
    """Whether a sign is smaller and higher than the one before, as a power or the mark of a note."""
    height = before[3] - before[1]
    return box[3] - box[1] < 0.85 * height and box[4] > before[4] + 0.15 * height


def _without_running_lines(
    pages: list[list[_PageLine]], step: float, largest: float
) -> Iterator[list[_PageLine]]:
    """Yield the lines of pages without the running heads and feet, unless a word of one is nowhere else."""
    ends = defaultdict(list)
    for page in pages:
        for side in (1, -1):
            lines = sorted(page, key=lambda line: side * line.bottom)[:4]
            gaps = [abs(one.bottom - two.bottom) > 1.5 * step for one, two in pairwise(lines)]
            if lines:
                ends[side, round(lines[0].bottom)].append(lines[: gaps.index(True) + 1] if any(gaps) else [])
    running = {
        line
        for several in ends.values()
        if sum(map(bool, several)) >= max(3, 0.8 * len(several))
        for line in chain.from_iterable(several)
        if line.size <= largest
    }
    known = {word for page in pages for line in page if line not in running for word in _words(line)}
    for page in pages:
        kept = [line for line in page if line not in running or not known.issuperset(_words(line))]
        known.update(word for line in kept for word in _words(line))
        yield kept


def _words(line: _PageLine) -> list[str]:
    return re.findall(r"[^\W\d_]+", line.text.casefold())


def _between(last: _PageLine | None, line: _PageLine, step: float) -> str:
    """What is between two lines: of the same row, of the same paragraph, or of neither."""
    if last is None:
        return "\n\n"
    down = last.bottom - line.bottom
    if line.page != last.page or down < -step / 2:  # the next page or column
        return "\n" if last.text[-1] in ",-" or line.text[0].islower() else "\n\n"
    if abs(down) < line.size / 3 and line.left > last.left:
        return "   " if line.left - last.right > line.size else " "
    return "\n\n" if down > 1.2 * step else "\n"
