"""Structures of texts by their format: Markdown, HTML, data or text, which is detected from the marks."""

import re
from itertools import pairwise
from typing import get_args

from precise_rag._memory import remembers
from precise_rag.checks import check_choice, check_text
from precise_rag.structure.base64_runs import without_base64
from precise_rag.structure.blocks import BlockStart, Structure, TextFormat
from precise_rag.structure.data import READ, data_blocks, is_data
from precise_rag.structure.html import html_blocks
from precise_rag.structure.markdown import markdown_blocks
from precise_rag.structure.marks import CODE_LINE, ITEM, with_tabs
from precise_rag.structure.plain import plain_blocks
from precise_rag.structure.source import is_source, source_blocks
from precise_rag.structure.turns import with_entries, with_turns

_HTML_START = re.compile(
    r"(?i)\s{0,1000}(?:<\?xml[^<>]{0,300}>\s{0,100})?(?:<!--[^<>]{0,2000}-->\s{0,100})?"
    r"<(?:!doctype html|html|head|body)\b"
)
_HTML_BLOCK = re.compile(
    r"</(?:p|div|li|ul|ol|d[ldt]|td|tr|table|h[1-6]|section|article|pre|blockquote)\s{0,9}>", re.IGNORECASE
)
_MARKDOWN = re.compile(
    r"(?m)^(?:#{1,6}[ \t]+\S|```|~~~~?(?!~)|[ \t]{0,3}\|?[ \t]{0,20}:?-{2,}:?[ \t]{0,20}\|[ \t:|-]{0,500}$)"
    r"|\[[^\[\]\n]{1,200}\]\([^()\s]{1,500}\)|\*\*\w[^*\n]{0,200}\*\*"
)
_RESTRUCTURED = re.compile(
    r"(?m)^[ \t]{0,40}\.\. [\w:.+-]{1,60}::|^\.\. _[^\n:]{1,100}:|:[a-z:]{2,30}:`[^`\n]{1,200}`"
    r"|(?<!`)``[^`\n]{1,200}``(?!`)|^([~^\"'*+#.])\1{3,}[ \t]{0,20}$|::[ \t]{0,20}\n[ \t]{0,20}\n[ \t]"
    r"|^[ \t]{0,40}\+[-=+]{3,500}[ \t]{0,20}$|^={1,6} \w|^#\+[A-Za-z]|^:PROPERTIES:|^\[source\b"
)
_MARKDOWN_HEADING = re.compile(r"(?m)^#{1,6}[ \t]+\S")
_HTML_HEADING = re.compile(r"</h[1-6]\s{0,9}>", re.IGNORECASE)
_FIRST_TAG = re.compile(
    r"(?i)\s{0,1000}<(?:p|h[1-6]|div|ul|ol|d[ldt]|table|section|article|main|header|blockquote)[\s>]"
)
_FEWEST_TAGS = 3
_FENCED = re.compile(r"(?ms)^[ \t]{0,12}(```|~~~).*?(?:^[ \t]{0,12}\1[`~]*[ \t]*$|\Z)")
_RIGHT_ABOVE = re.compile(r"(?m)^# [^\n]*\n(?=[^\s#])")
_WITHIN = re.compile(r"(?m)(?:(?<=[^\s-]\n)|(?<=[^\s-] \n))# [^\n]*\n(?=\S)")
_PROSE = re.compile(rf"\A{ITEM.pattern}|\w[.!?:][\"”)]? \Z")
_LINES_OF_A_MARK = 100
"""A text that does not begin with a mark of Markdown is plain if it has fewer than one for so many lines."""
_FEWEST_LINES, _SHARE_OF_CODE = 3, 0.2
"""Of the lines outside of fences, in source code."""
_CHARACTERS_OF_A_TAG = 400
"""A text that does not begin with a tag is HTML if it has one for so many characters, and few headings of
Markdown: tables are often written with tags in it."""


def detect_format(text: str) -> TextFormat:
    """Return the format of a text by its keys, tags, code or marks; "text" without them.

    reStructuredText counts as "text" where its marks are as many as those of Markdown.
    """
    if is_data(text):
        return "data"
    part = text[:READ]
    if _HTML_START.match(part):
        return "html"
    if is_source(part):
        return "source"
    markdown = sum(1 for _ in _MARKDOWN.finditer(part))
    tags = sum(1 for _ in _HTML_BLOCK.finditer(part))
    if tags >= _FEWEST_TAGS and tags > markdown:
        has_tags = tags * _CHARACTERS_OF_A_TAG > len(part)
        is_markdown = len(_MARKDOWN_HEADING.findall(part)) > len(_HTML_HEADING.findall(part))
        if (has_tags or _FIRST_TAG.match(part)) and not is_markdown:
            return "html"
    has_marks = markdown * _LINES_OF_A_MARK > part.count("\n") or _MARKDOWN.match(part.lstrip())
    if has_marks and markdown > sum(1 for _ in _RESTRUCTURED.finditer(part)) and not _is_source(part):
        return "markdown"
    return "text"


def _is_source(text: str) -> bool:
    """Whether a text is source code or settings, whose comments look like headings of Markdown."""
    lines = [words for line in _FENCED.sub("", text).split("\n") if (words := line.strip())]
    n_code = sum(line[0] != "<" and CODE_LINE.match(line) is not None for line in lines)
    comments = [line[:2] == "# " or line == "#" for line in lines]
    n_together = sum(both == (True, True) for both in pairwise(comments))
    if n_code >= max(_FEWEST_LINES, _SHARE_OF_CODE * len(lines)) or 3 * n_together > sum(comments):
        return True
    is_bare = len(_MARKDOWN.findall(text)) == sum(comments)
    n_prose = sum(line[0] != "#" and _PROSE.search(f"{line} ") is not None for line in lines)
    is_above = len(_RIGHT_ABOVE.findall(text)) > 1 and 10 * n_prose < len(lines)
    return is_bare and (is_above or 2 * len(_WITHIN.findall(text)) > sum(comments))


_READERS = {"markdown": markdown_blocks, "html": html_blocks, "text": plain_blocks}
_OF_BLOCKS = {"data": data_blocks, "source": source_blocks}
"""Readers that also tell what is above each block."""
_CARRIAGE_RETURN = re.compile(r"\r(?!\n)")
_BLANK = re.compile(r"(?<=\S)[\xa0\u1680\u2000-\u200a\u202f\u205f]|(?<=[\d.．)）、:])\u3000(?=\S)")
"""What is read as a line feed or a blank, of the same length; before a line it would make it code."""


def read_structure(text: str, text_format: TextFormat | None = None) -> Structure:
    """Read the blocks of a text: headings, paragraphs, list items, tables, code, quotes and turns.

    text_format: "markdown", "html", "data", "source" or "text"; default: detected from the text.
    Markdown is parsed by markdown-it; the other formats are read by rules. Time is linear in the text.
    Raises InputError for another format.
    """
    if text_format is not None:
        check_choice("text_format", text_format, get_args(TextFormat))
    check_text("text", text)
    return _read(text, text_format)


@remembers(16, longest=1_000_000)
def _read(text: str, text_format: TextFormat | None) -> Structure:
    lines = _BLANK.sub(" ", _CARRIAGE_RETURN.sub("\n", without_base64(text)).replace("\r\n", " \n"))
    chosen = text_format or detect_format(lines)
    above: list[tuple[int, tuple[str, ...]]] | None = None
    if chosen in _OF_BLOCKS:
        read = list(_OF_BLOCKS[chosen](lines)) if text else []
        found = [block for block, _, _ in read if block]
        above = [(place, titles) for _, place, titles in read]
    else:
        found = with_turns(lines, list(_READERS[chosen](with_tabs(lines))))
        found = with_entries(lines, found) if found and chosen != "html" else found
    starts: list[BlockStart] = []
    for block in found:
        if not starts or block[0] > starts[-1][0]:
            starts.append(block)
    if starts and starts[0][0] > 0:
        starts[0] = (0, *starts[0][1:])
    return Structure.of(lines, chosen, starts or ([(0, "paragraph", 0)] if text else []), above)
