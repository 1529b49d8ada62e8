"""The format of a text, from its marks."""

from __future__ import annotations

import re

from precise_rag.structure.blocks import TextFormat

_READ = 200_000
"""Characters that are looked at."""

_HTML_START = re.compile(
    r"\s{0,1000}(?:<\?xml[^<>]{0,300}>\s{0,100})?(?:<!--[^<>]{0,2000}-->\s{0,100})?"
    r"<(?:!doctype html|html|head|body)\b",
    re.IGNORECASE,
)
_HTML_BLOCK = re.compile(
    r"</(?:p|div|li|ul|ol|td|tr|table|h[1-6]|section|article|pre|blockquote)>", re.IGNORECASE
)
_MARKDOWN = re.compile(
    r"(?m)^(?:#{1,6}[ \t]+\S|```|~~~~?(?!~)|[ \t]{0,3}\|?[ \t]{0,20}:?-{2,}:?[ \t]{0,20}\|[ \t:|-]{0,500}$)"
    r"|\[[^\[\]\n]{1,200}\]\([^()\s]{1,500}\)|\*\*\w[^*\n]{0,200}\*\*"
)
_RESTRUCTURED = re.compile(
    r"(?m)^[ \t]{0,40}\.\. [\w:.+-]{1,60}::|^\.\. _[^\n:]{1,100}:|:[a-z:]{2,30}:`[^`\n]{1,200}`"
    r"|(?<!`)``[^`\n]{1,200}``(?!`)|^([~^\"'*+#.])\1{3,}[ \t]{0,20}$|::[ \t]{0,20}\n[ \t]{0,20}\n[ \t]"
    r"|^[ \t]{0,40}\+[-=+]{3,500}[ \t]{0,20}$"
)
_MARKDOWN_HEADING = re.compile(r"(?m)^#{1,6}[ \t]+\S")
_HTML_HEADING = re.compile(r"</h[1-6]>", re.IGNORECASE)
_FIRST_TAG = re.compile(
    r"\s{0,1000}<(?:p|h[1-6]|div|ul|ol|table|section|article|main|header|blockquote)[\s>]", re.IGNORECASE
)
_FEWEST_TAGS = 3
_CHARACTERS_OF_A_TAG = 400
"""A text that does not begin with a tag is HTML if it has one for so many characters, and few headings of
Markdown: tables are often written with tags in it."""


def detect_format(text: str) -> TextFormat:
    """Return the format of a text: "html" by its tags, "markdown" by its marks, else "text".

    reStructuredText counts as "text" where its marks are as many as those of Markdown.
    """
    part = text[:_READ]
    if _HTML_START.match(part):
        return "html"
    markdown = sum(1 for _ in _MARKDOWN.finditer(part))
    tags = sum(1 for _ in _HTML_BLOCK.finditer(part))
    if tags >= _FEWEST_TAGS and tags > markdown:
        has_tags = tags * _CHARACTERS_OF_A_TAG > len(part)
        is_markdown = len(_MARKDOWN_HEADING.findall(part)) > len(_HTML_HEADING.findall(part))
        if _FIRST_TAG.match(part) or (has_tags and not is_markdown):
            return "html"
    if markdown and markdown > sum(1 for _ in _RESTRUCTURED.finditer(part)):
        return "markdown"
    return "text"
