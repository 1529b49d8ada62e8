"""The process that converts files to Markdown; `conversion.py` starts this file as a program.

It reads requests from standard input, each a line of JSON and then the bytes of a file, and answers each with
a line of JSON. It imports nothing of this package; pdf.py beside it is run by its path.
"""

import faulthandler
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

    class EpubConverter(of_markitdown.EpubConverter):  # type: ignore[misc]
        def _resolve_manifest_href(self, href: str, base_path: str, zip_names: set[str]) -> str:
            place: str = super()._resolve_manifest_href(href.partition("#")[0], base_path, zip_names)
            self.unread += [place] * (place not in zip_names)
            return place

    _mend_readers()
    converters = {  # not MarkItDown, which reads a damaged file as if it were plain text
        **dict.fromkeys((".html", ".htm"), HtmlConverter()),
        ".docx": of_markitdown.DocxConverter(),
        ".pptx": of_markitdown.PptxConverter(),
        ".epub": EpubConverter(),
        ".ipynb": of_markitdown.IpynbConverter(),
    }
    converters[".docx"]._html_converter = converters[".epub"]._html_converter = HtmlConverter()
    pdf_markdown = run_path(str(Path(__file__).with_name("pdf.py")))["pdf_markdown"]
    replies = os.fdopen(os.dup(1), "w", encoding="ascii")
    os.dup2(2, 1)  # what converters print is not a reply
    while line := sys.stdin.buffer.readline():
        request = json.loads(line)
        stream = io.BytesIO(sys.stdin.buffer.read(request["bytes"]))
        faulthandler.dump_traceback_later(request["seconds"], exit=True)  # also if who asks was killed
        try:
            converter = converters.get(request["suffix"])
            reply = markdown(converter, stream, request["suffix"]) if converter else pdf_markdown(stream)
        except MemoryError:
            reply = {"error": "it takes too much memory"}
        except Exception as error:
            reply = {"error": " ".join(f"{type(error).__name__}: {error}".split())[:500]}
        faulthandler.cancel_dump_traceback_later()
        print(json.dumps(reply), file=replies, flush=True)


def markdown(converter: Any, stream: BinaryIO, suffix: str) -> dict[str, Any]:
    """Return the text of a file as Markdown, its title, where its slides begin, and what of it is missing."""
    from markitdown import StreamInfo

    about = StreamInfo(extension=suffix, charset="utf-8")
    unread = converter.unread = list[str]()
    converted = converter.convert(stream, about, escape_underscores=False, escape_asterisks=False)
    is_head = suffix == ".epub" and "\n\n" not in converted.markdown.rstrip()  # its title and makers alone
    first, *slides = _SLIDE.split("" if is_head else converted.markdown)
    text, pages = first.lstrip() if slides else first, []
    for number, slide in enumerate(slides, start=1):
        pages.append(len(text))
        text += slide if slide.lstrip().startswith("# ") else f"# Slide {number}\n\n{slide}"
    title = " ".join((converted.title or "").split())
    return {"text": text, "title": title, "pages": pages, "unread": unread}


def _mend_readers() -> None:
    """Have mammoth write pictures as their names, and minidom find the parts of an EPUB by any prefix."""
    from xml.dom import minidom

    from mammoth import html, images

    document: Any = minidom.Document
    document.getElementsByTagName = lambda its, name: its.getElementsByTagNameNS("*", name.split(":")[-1])
    images.data_uri = lambda one: [html.text(f" ![{one.alt_text}]() ")] if one.alt_text else []


def as_seen(stream: BinaryIO) -> BinaryIO:
    """Return HTML in UTF-8 as it is seen, without what nobody sees."""
    from bs4 import BeautifulSoup

    data = stream.read()
    is_utf8 = data == data.decode("utf-8", "ignore").encode()  # whatever it says of itself
    soup = BeautifulSoup(data, "lxml", from_encoding="utf-8" if is_utf8 else None)
    for unseen in soup.select(_UNSEEN):
        unseen.clear()  # it stays, empty: what leaves is looked for among all its neighbours
        unseen.name, unseen.attrs = "span", {}
    for change in (_part_words, _name_panels, _plain_links_and_digits, _fill_cells):
        change(soup)
    return io.BytesIO(soup.encode())


def _plain_links_and_digits(soup: Any) -> None:
    """Leave out links to the place, and where those lead that are of use on the site only; raise digits."""
    for raised in soup("sup"):
        digits = raised.get_text(strip=True)
        if digits.lstrip("+-−").isdecimal() and raised.find("a") is None:
            raised.name, raised.attrs, raised.string = "span", {}, digits.translate(_SUPERSCRIPT)
    for link in soup.select("a[href]"):
        if link.get_text(strip=True) in _ANCHORS:
            link.clear()
        elif not _KEPT_LINK.match(link["href"]):
            link.name, link.attrs = "span", {}


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
                spans = (str(cell.get(name)) for name in ("rowspan", "colspan"))
                n_rows, n_columns = (min(int(n[:4]), 99) or 1 if n.isdecimal() else 1 for n in spans)
                place = next(free for free in count(place) if free not in filled[number])
                for merged in filled[number : number + n_rows]:
                    merged.update(dict.fromkeys(range(place, place + n_columns), cell))
        for row, cells in zip(rows, filled, strict=True):
            if len(set(map(id, cells.values()))) > 1:
                for cell in cells.values():
                    cell.attrs = {}
                row.clear()
                row.extend(copy(cells[place]) for place in sorted(cells))


if __name__ == "__main__":
    main()
