"""Pages, headings and tables of a PDF, from the sizes and places of its letters.

Runs in the converter's process.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO, NamedTuple

from precise_rag.documents.office import markdown_table
from precise_rag.pages import write_boxes

_LARGER = 1.15
"""A line is a heading if its letters are larger than the letters of the text by this factor …"""
_LONGEST_HEADING = 150
"""… and it has no more characters."""
_MOST_LEVELS = 4
_BETWEEN = "\n\n"
"""Between two pages."""
_NO_HEADING = re.compile(r"^#+(?= )")
"""What would make a heading of a line of text."""
_SPACE = 0.15
"""Distance between two letters that is a space, as a share of their size; many files have no other spaces."""
_GAP = 0.6
"""Space between two lines that begins a paragraph, as a share of a line's height."""


def pdf_markdown(stream: BinaryIO) -> tuple[str, list[int], str]:
    """Return the text of a PDF as Markdown, the offset at which each page begins, and the boxes of its lines.

    The boxes are the text of `precise_rag.pages`.
    """
    import pdfplumber

    pages: list[list[_Line]] = []
    with pdfplumber.open(stream) as pdf:
        for page in pdf.pages:
            pages.append(list(_lines(page)))
            page.close()
    sizes = Counter[float]()
    for line in (line for page in pages for line in page if line.size is not None):
        sizes[line.size or 0.0] += len(line.text)
    body = sizes.most_common(1)[0][0] if sizes else 0.0
    larger = sorted((size for size in sizes if size > body * _LARGER), reverse=True)
    starts, texts, boxes, at = [], [], [], 0
    for page in pages:
        starts.append(at)
        text = ""
        for between, words, line in _written(page, larger):
            text += between if text else ""
            boxes.append((at + len(text), line.box))
            text += words
        texts.append(text)
        at += len(text) + len(_BETWEEN)
    return _BETWEEN.join(texts), starts, write_boxes(boxes)


class _Line(NamedTuple):
    """A line of text, or a row of a table as Markdown. size: of its letters; None for a row.

    box: left, upper, right and lower edge. begins: whether it is the first row of a table.
    """

    text: str
    box: tuple[float, float, float, float]
    size: float | None = None
    begins: bool = False


def _lines(page: Any) -> Iterator[_Line]:
    """The lines of a page and the rows of its tables, from top to bottom."""
    tables = page.find_tables()
    boxes = sorted(((table.bbox[1], table) for table in tables), key=lambda pair: pair[0])

    def outside(thing: Any) -> bool:
        x, y = (thing["x0"] + thing["x1"]) / 2, (thing["top"] + thing["bottom"]) / 2
        return not any(t.bbox[0] <= x <= t.bbox[2] and t.bbox[1] <= y <= t.bbox[3] for t in tables)

    text = page.filter(lambda thing: thing["object_type"] != "char" or outside(thing))
    for line in text.extract_text_lines(x_tolerance_ratio=_SPACE):
        while boxes and boxes[0][0] < line["top"]:
            yield from _table(boxes.pop(0)[1])
        if words := line["text"].strip():
            sizes = Counter(round(char["size"], 1) for char in line["chars"])
            yield _Line(words, _edges(line), sizes.most_common(1)[0][0])
    for _, table in boxes:
        yield from _table(table)


def _edges(line: Any) -> tuple[float, float, float, float]:
    return line["x0"], line["top"], line["x1"], line["bottom"]


def _table(table: Any) -> Iterator[_Line]:
    """The rows of a table, each with its place; the head has the rule below it."""
    cells = table.extract(x_tolerance_ratio=_SPACE)
    rows = [(row, place.bbox) for row, place in zip(cells, table.rows, strict=True) if any(row)]
    written = markdown_table([row for row, _ in rows]).split("\n")
    for number, ((_, box), text) in enumerate(zip(rows, [written[0], *written[2:]], strict=False)):
        yield _Line(text if number else "\n".join(written[:2]), box, begins=number == 0)


def _written(page: Sequence[_Line], larger: Sequence[float]) -> Iterator[tuple[str, str, _Line]]:
    """What stands before each line of a page, the line as it is written, and the line."""
    last: _Line | None = None
    was_heading = False
    for line in page:
        is_heading = line.size in larger and len(line.text) <= _LONGEST_HEADING
        if line.size is None:
            between, text = "\n\n" if line.begins else "\n", line.text
        elif is_heading:
            level = min(larger.index(line.size) + 1, _MOST_LEVELS)
            between, text = "\n\n", f"{'#' * level} {line.text}"
        else:
            goes_on = last is not None and last.size is not None and not was_heading
            is_near = last is None or line.box[1] - last.box[3] <= _GAP * (last.box[3] - last.box[1])
            between = "\n" if goes_on and is_near else "\n\n"
            text = _NO_HEADING.sub(r"\\\g<0>", line.text)
        yield between, text, line
        last, was_heading = line, is_heading
