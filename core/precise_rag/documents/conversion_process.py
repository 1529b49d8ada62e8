"""The process that converts files to Markdown; `conversion.py` starts this file as a program.

It reads requests from standard input, each a line of JSON and then the bytes of a file, and answers each with
a line of JSON. It imports nothing of this package; pdf.py beside it is run by its path.
"""

import io
import json
import os
import re
import sys
from copy import copy
from itertools import count
from pathlib import Path
from runpy import run_path
from typing import Any, BinaryIO

_MOST_MEMORY = 4 * 2**30
_JOINS = re.compile(r"[\s.,;:!?(){}\[\]<>/\\'\"=_-]|\A.?\Z")
"""A sign beside which no space is missing."""
_SUPERSCRIPT = str.maketrans("0123456789+-−", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻")
_ANCHORS = "¶", "#", "§", "🔗"
_KEPT_LINK = re.compile(r"[a-z]+:|#_?(?:fn|footnote|note|ftn|cite)", re.I)
"""What leads to the place itself, and links that lead out of the page, or to a note."""
_INLINE = "span", "a", "b", "strong", "button", "label", "option", "small", "time"
_UNSEEN = "template, noscript, [hidden], [style*='display:none' i], [style*='display: none' i]"
"""HTML that nobody sees."""
_SLIDE = re.compile(r"<!-- Slide number: \d+ -->\n?")


def main() -> None:
    """Answer requests until standard input ends."""
    if sys.platform != "win32":
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, _MOST_MEMORY))
    from markitdown import converters as of_markitdown

    class HtmlConverter(of_markitdown.HtmlConverter):  # type: ignore[misc]  # Markitdown has no types
        def convert(self, file_stream: BinaryIO, stream_info: Any, **options: Any) -> Any:
            return super().convert(as_seen(file_stream), stream_info, **options)

    converters = {  # not MarkItDown, which reads a damaged file as if it were plain text
        **dict.fromkeys((".html", ".htm"), HtmlConverter()),
        ".docx": of_markitdown.DocxConverter(),
        ".pptx": of_markitdown.PptxConverter(),
        ".epub": of_markitdown.EpubConverter(),
        ".ipynb": of_markitdown.IpynbConverter(),
    }
    converters[".docx"]._html_converter = converters[".epub"]._html_converter = HtmlConverter()
    pdf_markdown = run_path(str(Path(__file__).with_name("pdf.py")))["pdf_markdown"]
    replies = os.fdopen(os.dup(1), "w", encoding="ascii")
    os.dup2(2, 1)  # what converters print is not a reply
    while line := sys.stdin.buffer.readline():
        request = json.loads(line)
        stream = io.BytesIO(sys.stdin.buffer.read(request["bytes"]))
        try:
            converter = converters.get(request["suffix"])
            reply = markdown(converter, stream, request["suffix"]) if converter else pdf_markdown(stream)
        except MemoryError:
            reply = {"error": "it takes too much memory"}
        except Exception as error:
            reply = {"error": " ".join(f"{type(error).__name__}: {error}".split())[:500]}
        replies.write(json.dumps(reply) + "\n")
        replies.flush()


def markdown(converter: Any, stream: BinaryIO, suffix: str) -> dict[str, Any]:
    """Return the text of a file as Markdown, its title, and where the slides of a presentation begin."""
    from markitdown import StreamInfo

    about = StreamInfo(extension=suffix, charset="utf-8")
    plain = {"escape_underscores": False, "escape_asterisks": False}
    converted = converter.convert(stream, about, **plain)
    first, *slides = _SLIDE.split(converted.markdown)
    text, pages = first.lstrip() if slides else first, []
    for number, slide in enumerate(slides, start=1):
        pages.append(len(text))
        text += slide if slide.lstrip().startswith("# ") else f"# Slide {number}\n\n{slide}"
    return {"text": text, "title": " ".join((converted.title or "").split()), "pages": pages}


def as_seen(stream: BinaryIO) -> BinaryIO:
    """Return HTML in UTF-8 as it is seen, without what nobody sees."""
    from bs4 import BeautifulSoup

    soup = BeautifulSoup(stream.read(), "lxml", from_encoding="utf-8")
    for unseen in soup.select(_UNSEEN):
        unseen.clear()  # it stays, empty: what leaves is looked for among all its neighbours
        unseen.name, unseen.attrs = "span", {}
    for change in (_part_words, _name_panels, _raise_digits, _keep_links_out, _fill_cells):
        change(soup)
    return io.BytesIO(soup.encode())


def _keep_links_out(soup: Any) -> None:
    """Leave out links to the place itself, and where links lead that make sense on the site only."""
    for link in soup.select("a[href]"):
        if link.get_text(strip=True) in _ANCHORS:
            link.clear()
        elif not _KEPT_LINK.match(link["href"]):
            link.name, link.attrs = "span", {}


def _raise_digits(soup: Any) -> None:
    """Write powers and marks of notes as raised digits, which Markdown does not have."""
    for raised in soup("sup"):
        digits = raised.get_text(strip=True)
        if digits.lstrip("+-−").isdecimal() and raised.find("a") is None:
            raised.name, raised.attrs, raised.string = "span", {}, digits.translate(_SUPERSCRIPT)


def _part_words(soup: Any) -> None:
    """Put a space between neighbouring elements that are parted by their style only."""
    for one in soup.find_all(_INLINE):
        after = one.next_sibling
        is_beside = getattr(after, "name", None) in _INLINE and one.find_parent(["pre", "code"]) is None
        if is_beside and not _JOINS.search(one.get_text()[-1:] + after.get_text()[:1]):
            one.append(" ")  # what is beside it would be looked for among all its neighbours


def _name_panels(soup: Any) -> None:
    """Make the name of a tab, or of what opens by a click, the heading of what it shows."""
    tabs = {link.get("aria-controls") or link.get("href", "")[1:]: link for link in soup(["a", "button"])}
    named = {one["id"]: one for one in soup.select("[id]")}
    for panel in soup.select("[role=tabpanel]"):
        if tab := named.get(panel.get("aria-labelledby")) or tabs.get(panel.get("id") or None):
            panel.insert(0, soup.new_tag("h6", string=tab.get_text(" ", strip=True)))
    for opened in soup("summary"):
        opened.name = "h6"


def _fill_cells(soup: Any) -> None:
    """Put a merged cell in each of its rows and columns; one that is alone in its row stays as it is."""
    for table in soup("table"):
        rows = [row for row in table("tr") if row.find_parent("table") is table]
        filled: list[dict[int, Any]] = [{} for _ in rows]
        for number, row in enumerate(rows):
            place = 0
            for cell in row.find_all(["td", "th"], recursive=False):
                n_rows, n_columns = (_span(cell, name) for name in ("rowspan", "colspan"))
                place = next(free for free in count(place) if free not in filled[number])
                for merged in filled[number : number + n_rows]:
                    merged.update(dict.fromkeys(range(place, place + n_columns), cell))
        for row, cells in zip(rows, filled, strict=True):
            if len(set(map(id, cells.values()))) > 1:
                for cell in cells.values():
                    cell.attrs = {}
                row.clear()
                row.extend(copy(cells[place]) for place in sorted(cells))


def _span(cell: Any, name: str) -> int:
    span = str(cell.get(name))
    return min(int(span[:4]), 99) or 1 if span.isdecimal() else 1


if __name__ == "__main__":
    main()
