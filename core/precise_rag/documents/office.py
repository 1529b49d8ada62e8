"""OpenDocument texts, spreadsheets and Rich Text as Markdown. Runs in the converter's process."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import groupby
from typing import Any, BinaryIO

_OFFICE = "{urn:oasis:names:tc:opendocument:xmlns:office:1.0}"
_TEXT = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}"
_TABLE = "{urn:oasis:names:tc:opendocument:xmlns:table:1.0}"
_TITLE = "{http://purl.org/dc/elements/1.1/}title"
_NOT_READ = frozenset(
    (
        *(f"{_TEXT}{name}" for name in ("note-citation", "tracked-changes", "bibliography-mark")),
        f"{_OFFICE}annotation",
    )
)
_ROW_GROUPS = frozenset(f"{_TABLE}table-{name}" for name in ("header-rows", "rows", "row-group"))
_DEEPEST = 6
_MOST_REPEATS = 1_000
"""Columns or spaces that one element may stand for."""
_NO_MARK = re.compile(r"^(#{1,6}(?= )|[-+>](?= )|\d{1,9}(?=[.)] ))")
"""What would make a heading, an item or a quote of a line of text."""


def opendocument_markdown(stream: BinaryIO) -> tuple[str, str]:
    """Return an OpenDocument text as Markdown, and its title, which may be empty."""
    from defusedxml import ElementTree

    with zipfile.ZipFile(stream) as archive:
        body = ElementTree.fromstring(archive.read("content.xml")).find(f"{_OFFICE}body")
        names = archive.namelist()
        about = ElementTree.fromstring(archive.read("meta.xml")) if "meta.xml" in names else None
    title = "" if about is None else about.findtext(f".//{_TITLE}") or ""
    return "\n\n".join(filter(None, _blocks(body if body is not None else ()))), " ".join(title.split())


def _blocks(parent: Iterable[Any]) -> Iterator[str]:
    """The headings, paragraphs, lists and tables of an element."""
    for element in parent:
        if element.tag == f"{_TEXT}h":
            level = element.get(f"{_TEXT}outline-level", "1")
            words = " ".join(_words(element).split())
            yield (
                f"{'#' * max(1, min(int(level) if level.isdecimal() else 1, _DEEPEST))} {words}"
                if words
                else ""
            )
        elif element.tag == f"{_TEXT}p":
            yield _NO_MARK.sub(r"\\\1", _words(element).strip())
        elif element.tag == f"{_TEXT}list":
            yield "\n".join(_items(element, 0))
        elif element.tag == f"{_TABLE}table":
            yield markdown_table(_rows(element))
        elif element.tag not in _NOT_READ:
            yield from _blocks(element)


def _words(element: Any) -> str:
    """The text of a paragraph, with its spaces, tabs and line breaks."""
    parts = [element.text or ""]
    for child in element:
        name = child.tag.removeprefix(_TEXT)
        if name == "s":
            count = child.get(f"{_TEXT}c", "1")
            parts.append(" " * min(int(count) if count.isdecimal() else 1, _MOST_REPEATS))
        elif name == "tab":
            parts.append("\t")
        elif name == "line-break":
            parts.append("\n")
        elif name == "note":
            body = child.find(f"{_TEXT}note-body")
            parts.append(f" ({' '.join(_blocks(body))})" if body is not None else "")
        elif name == "p":  # of a frame in the paragraph
            parts.append(f" {_words(child)} ")
        elif child.tag not in _NOT_READ:
            parts.append(_words(child))
        parts.append(child.tail or "")
    return "".join(parts)


def _items(element: Any, depth: int) -> Iterator[str]:
    """The lines of a list, and of the lists in it."""
    for item in element:
        first = True
        for child in item:
            if child.tag == f"{_TEXT}list":
                yield from _items(child, depth + 1)
            elif words := " ".join(_words(child).split()):
                yield f"{'  ' * depth}{'-' if first else ' '} {words}"
                first = False


def _rows(table: Any) -> Iterator[list[str]]:
    """The rows of a table; those of a table in a cell are text of the cell."""
    for row in table:
        if row.tag in _ROW_GROUPS:
            yield from _rows(row)
        if row.tag != f"{_TABLE}table-row":
            continue
        cells: list[str] = []
        for cell in row:
            if cell.tag in (f"{_TABLE}table-cell", f"{_TABLE}covered-table-cell"):
                count = cell.get(f"{_TABLE}number-columns-repeated", "1")
                words = " ".join(" ".join(_blocks(cell)).split())
                cells += [words] * min(int(count) if count.isdecimal() else 1, _MOST_REPEATS)
        yield cells


def spreadsheet_markdown(stream: BinaryIO) -> str:
    """Return the sheets of a spreadsheet as Markdown tables.

    A sheet has its name above it, and its first row is the head. Rows and columns without values, and
    hidden sheets, are left out.
    """
    from python_calamine import CalamineWorkbook, SheetVisibleEnum

    parts: list[str] = []
    with CalamineWorkbook.from_filelike(stream) as book:
        for about in book.sheets_metadata:
            if about.visible != SheetVisibleEnum.Visible:
                continue
            rows = [list(map(_value, row)) for row in book.get_sheet_by_name(about.name).to_python()]
            used = sorted({n for row in rows for n, cell in enumerate(row) if cell})
            tables = "\n\n".join(
                f"{title}\n\n{markdown_table(body)}" if title else markdown_table(body)
                for title, body in _tables([[row[n] if n < len(row) else "" for n in used] for row in rows])
            )
            if tables:
                parts.append(f"## {' '.join(about.name.split())}\n\n{tables}")
    return "\n\n".join(parts)


def _tables(rows: Iterable[Sequence[str]]) -> Iterator[tuple[str, list[Sequence[str]]]]:
    """The tables of a sheet, which rows without values part; the text of a single cell above is a title."""
    title, body = "", list[Sequence[str]]()
    for row in [*rows, ()]:
        filled = [cell for cell in row if cell]
        if len(filled) == 1 and not body and len(row) > 1:
            title = f"{title} {filled[0]}".strip()
        elif filled:
            body.append(row)
        elif body:
            yield title, body
            title, body = "", []
    if title:
        yield "", [[title]]


def _value(value: object) -> str:
    """A value as it is read: whole numbers without a point, dates without an empty time."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    if isinstance(value, datetime) and not any((value.hour, value.minute, value.second, value.microsecond)):
        return str(value.date())
    return " ".join(str(value).split())


def markdown_table(rows: Iterable[Sequence[str | None]]) -> str:
    """Return rows as a Markdown table with the first as its head; empty without rows."""
    cells = [[" ".join((cell or "").split()).replace("|", r"\|") for cell in row] for row in rows if row]
    cells = [row for row in cells if any(row)]
    if not cells:
        return ""
    width = max(map(len, cells))
    full = [[*row, *[""] * (width - len(row))] for row in cells]
    return "\n".join(f"| {' | '.join(row)} |" for row in (full[0], ["---"] * width, *full[1:]))


def rtf_text(data: bytes) -> str:
    """Return the text of a file in Rich Text Format; its letters beyond ASCII are escapes."""
    from striprtf.striprtf import rtf_to_text

    text: str = rtf_to_text(data.decode("latin-1"), errors="replace")
    lines = (line.strip() for line in text.splitlines())
    blocks = groupby(filter(None, lines), key=lambda line: line.endswith("|") and line.count("|") > 1)
    return "\n\n".join(
        markdown_table([line[:-1].split("|") for line in block]) if is_row else "\n\n".join(block)
        for is_row, block in blocks
    )
