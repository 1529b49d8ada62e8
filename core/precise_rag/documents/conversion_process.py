"""The process that converts files to Markdown; `conversion.py` starts this file as a program.

It reads requests from standard input, each a line of JSON and then the bytes of a file, and answers each with
a line of JSON. It imports nothing of this package.
"""

import io
import json
import os
import re
import sys
from typing import Any, BinaryIO

_MOST_MEMORY = 4 * 2**30
_SLIDE = re.compile(r"<!-- Slide number: \d+ -->\n?")


def main() -> None:
    """Answer requests until standard input ends."""
    if sys.platform != "win32":
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, _MOST_MEMORY))
    from markitdown import converters as of_markitdown

    converters = {  # not MarkItDown, which reads a damaged file as if it were plain text
        ".html": of_markitdown.HtmlConverter(),
        ".htm": of_markitdown.HtmlConverter(),
        ".docx": of_markitdown.DocxConverter(),
        ".pptx": of_markitdown.PptxConverter(),
        ".epub": of_markitdown.EpubConverter(),
        ".ipynb": of_markitdown.IpynbConverter(),
    }
    replies = os.fdopen(os.dup(1), "w", encoding="ascii")
    os.dup2(2, 1)  # what converters print is not a reply
    while line := sys.stdin.buffer.readline():
        request = json.loads(line)
        stream = io.BytesIO(sys.stdin.buffer.read(request["bytes"]))
        try:
            converter = converters.get(request["suffix"])
            reply = markdown(converter, stream, request["suffix"]) if converter else pdf_text(stream)
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
    for slide in slides:
        pages.append(len(text))
        text += slide
    return {"text": text, "title": " ".join((converted.title or "").split()), "pages": pages}


def pdf_text(stream: BinaryIO) -> dict[str, Any]:
    """Return the text of a PDF, and where its pages begin."""
    from pypdf import PdfReader

    text, pages = "", []
    for page in PdfReader(stream).pages:
        pages.append(len(text))
        text += page.extract_text().strip() + "\n\n"
    return {"text": text, "title": "", "pages": pages}


if __name__ == "__main__":
    main()
