"""The process that converts files to Markdown; `conversion.py` starts it.

It reads requests from standard input, each a line of JSON and then the bytes of the file, and writes a line
of JSON for each. It never opens the file itself. What a file could make a converter do is refused from the
first request on: network connections and other programs; its memory is limited where the system can.
"""

import importlib.util
import io
import json
import os
import re
import sys
import warnings
from typing import Any, BinaryIO

_NEEDED = ("markitdown", "mammoth", "pdfplumber", "pptx", "python_calamine", "striprtf")
_OFFICE = (".odt", ".rtf", ".xlsx", ".xlsb", ".xls", ".ods")
_MOST_MEMORY = 4 * 2**30
_REFUSED = ("socket.", "subprocess.", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "pty.")
_SLIDE = re.compile(r"<!-- Slide number: \d+ -->\n?")
_READS_AS = {".htm": ".html", ".xhtml": ".html"}


def main() -> None:
    """Answer requests until standard input ends."""
    requests, replies = sys.stdin.buffer, os.fdopen(os.dup(1), "w", encoding="ascii")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what converters print is not a reply
    warnings.simplefilter("ignore")
    missing = next((name for name in _NEEDED if importlib.util.find_spec(name) is None), None)
    converters = {} if missing else _load()
    _close_doors()
    while line := requests.readline():
        request = json.loads(line)
        stream = io.BytesIO(requests.read(request["bytes"]))
        reply = {"missing": missing} if missing else _reply(converters, request, stream)
        replies.write(json.dumps(reply) + "\n")
        replies.flush()


def _reply(converters: dict[str, Any], request: dict[str, Any], stream: BinaryIO) -> dict[str, Any]:
    try:
        reply = _convert(converters, request["suffix"], stream)
    except MemoryError:
        return {"error": "it takes too much memory"}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"[:500]}
    return reply if len(reply["text"]) <= request["most"] else {**reply, "text": None}


def _load() -> dict[str, Any]:
    from markitdown import converters

    return {
        ".html": converters.HtmlConverter(),
        ".docx": converters.DocxConverter(),
        ".pptx": converters.PptxConverter(),
        ".epub": converters.EpubConverter(),
        ".ipynb": converters.IpynbConverter(),
    }


def _close_doors() -> None:
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, _MOST_MEMORY))
    except (ImportError, OSError, ValueError):
        pass  # no such limit on this system

    def refuse(event: str, arguments: object) -> None:
        if event.startswith(_REFUSED):
            raise PermissionError(f"{event} is refused while a file is converted")

    sys.addaudithook(refuse)


def _convert(converters: dict[str, Any], suffix: str, stream: BinaryIO) -> dict[str, Any]:
    kind = _READS_AS.get(suffix, suffix)
    if kind == ".pdf":
        if b"%PDF" not in stream.read(1024):
            raise ValueError("it does not begin as a PDF does")
        from precise_rag.documents.pdf import pdf_markdown

        text, pages, boxes = pdf_markdown(stream)
        return {"text": text, "pages": pages, "title": "", "boxes": boxes}
    if kind in _OFFICE:
        text, title = _office(kind, stream)
        return {"text": text, "pages": [], "title": title}
    from markitdown import StreamInfo

    about = StreamInfo(extension=kind, charset="utf-8")
    options = {"escape_underscores": False, "escape_asterisks": False}
    converted = converters[kind].convert(stream, about, **options)
    text, pages = _slides(converted.markdown) if kind == ".pptx" else (converted.markdown, [])
    return {"text": text, "pages": pages, "title": " ".join((converted.title or "").split())}


def _office(kind: str, stream: BinaryIO) -> tuple[str, str]:
    """The text and the title of an office file."""
    from precise_rag.documents import office

    if kind == ".odt":
        return office.opendocument_markdown(stream)
    text = office.rtf_text(stream.read()) if kind == ".rtf" else office.spreadsheet_markdown(stream)
    return text, ""


def _slides(markdown: str) -> tuple[str, list[int]]:
    """The text without the comments that begin the slides, and the offset of each slide."""
    first, *slides = _SLIDE.split(markdown)
    text, starts = first.lstrip(), []
    for slide in slides:
        starts.append(len(text))
        text += slide
    return text, starts
