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
_CHANGED = re.compile(rb"\b(?:colspan|rowspan|hidden)\b|<(?:template|noscript)\b|display:\s?none", re.I)
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
    """Return HTML in UTF-8 without what nobody sees; a merged cell is in each of its rows and columns.

    A cell that is alone in its row, as a title is, stays as it is.
    """
    html = stream.read()
    if not _CHANGED.search(html):
        return io.BytesIO(html)
    from bs4 import BeautifulSoup

    soup = BeautifulSoup(html, "html.parser", from_encoding="utf-8")
    for unseen in soup.select(_UNSEEN):
        unseen.decompose()
    for table in soup("table"):
        rows = [row for row in table("tr") if row.find_parent("table") is table]
        filled: list[dict[int, Any]] = [{} for _ in rows]
        for number, row in enumerate(rows):
            for cell in row.find_all(["td", "th"], recursive=False):
                n_rows, n_columns = (_span(cell, name) for name in ("rowspan", "colspan"))
                place = next(free for free in count() if free not in filled[number])
                for merged in filled[number : number + n_rows]:
                    merged.update(dict.fromkeys(range(place, place + n_columns), cell))
        for row, cells in zip(rows, filled, strict=True):
            if len(set(map(id, cells.values()))) > 1:
                for cell in cells.values():
                    cell.attrs = {}
                row.clear()
                row.extend(copy(cells[place]) for place in sorted(cells))
    return io.BytesIO(soup.encode())


def _span(cell: Any, name: str) -> int:
    span = str(cell.get(name))
    return min(int(span), 99) if span.isdigit() and int(span) else 1


if __name__ == "__main__":
    main()
