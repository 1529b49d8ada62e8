"""Pages, headings and tables of a PDF, from the sizes and places of its letters.

Runs in the converter's process.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

_LARGER = 1.15
"""A line is a heading if its letters are larger than the letters of the text by this factor …"""
_LONGEST_HEADING = 150
"""… and it has no more characters."""
_MOST_LEVELS = 4
_BETWEEN = "\n\n"
"""Between two pages."""
_NO_HEADING = re.compile(r"^#+(?= )")
"""What would make a heading of a line of text."""
_BLANK_LINES = re.compile(r"\n{3,}")
_SPACE = 0.15
"""Distance between two letters that is a space, as a share of their size; many files have no other spaces."""
_GAP = 0.6
"""Space between two lines that begins a paragraph, as a share of a line's height."""


def pdf_markdown(stream: BinaryIO) -> tuple[str, list[int]]:
    """Return the text of a PDF as Markdown, and the offset at which each page begins."""
    import pdfplumber

    pages: list[list[Any]] = []
    with pdfplumber.open(stream) as pdf:
        for page in pdf.pages:
            pages.append(list(_parts(page)))
            page.close()
    sizes = Counter[float]()
    for part in (part for page in pages for part in page if isinstance(part, dict)):
        sizes[part["size"]] += len(part["text"])
    body = sizes.most_common(1)[0][0] if sizes else 0.0
    larger = sorted((size for size in sizes if size > body * _LARGER), reverse=True)
    starts, at, texts = [], 0, []
    for page in pages:
        starts.append(at)
        texts.append(_BLANK_LINES.sub("\n\n", "".join(_written(page, larger))).strip())
        at += len(texts[-1]) + len(_BETWEEN)
    return _BETWEEN.join(texts), starts


def _parts(page: Any) -> Iterator[Any]:
    """The lines of a page, each a dict, and its tables, each Markdown; from top to bottom."""
    tables = page.find_tables()
    boxes = [(table.bbox[1], table) for table in tables]

    def outside(thing: Any) -> bool:
        x, y = (thing["x0"] + thing["x1"]) / 2, (thing["top"] + thing["bottom"]) / 2
        return not any(t.bbox[0] <= x <= t.bbox[2] and t.bbox[1] <= y <= t.bbox[3] for t in tables)

    text = page.filter(lambda thing: thing["object_type"] != "char" or outside(thing))
    lines = text.extract_text_lines(x_tolerance_ratio=_SPACE)
    for line in lines:
        while boxes and boxes[0][0] < line["top"]:
            yield _table(boxes.pop(0)[1].extract(x_tolerance_ratio=_SPACE))
        sizes = Counter(round(char["size"], 1) for char in line["chars"])
        yield {**line, "chars": None, "size": sizes.most_common(1)[0][0]}
    for _, table in boxes:
        yield _table(table.extract(x_tolerance_ratio=_SPACE))


def _written(page: Sequence[Any], larger: Sequence[float]) -> Iterator[str]:
    last: Any = None
    for part in page:
        if isinstance(part, str):
            yield f"\n\n{part}"
        elif part["size"] in larger and len(part["text"]) <= _LONGEST_HEADING:
            level = min(larger.index(part["size"]) + 1, _MOST_LEVELS)
            yield f"\n\n{'#' * level} {part['text'].strip()}\n\n"
        else:
            near = isinstance(last, dict) and last["size"] == part["size"]
            gap = near and part["top"] - last["bottom"] > _GAP * (last["bottom"] - last["top"])
            yield "\n\n" if gap or isinstance(last, str) else "\n" if near else ""
            yield _NO_HEADING.sub(r"\\\g<0>", part["text"].strip())
        last = part


def _table(rows: Sequence[Sequence[str | None]]) -> str:
    cells = [[" ".join((cell or "").split()).replace("|", r"\|") for cell in row] for row in rows if row]
    if not cells:
        return ""
    lines = [cells[0], ["---"] * len(cells[0]), *cells[1:]]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
