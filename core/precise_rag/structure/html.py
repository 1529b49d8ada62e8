"""Blocks of HTML, by its block-level tags. The tags stay in the text."""

import re
from collections import Counter
from collections.abc import Iterator

from precise_rag.structure.blocks import BlockKind, BlockStart
from precise_rag.structure.marks import after_space

_TAG = re.compile(
    r"(?i)<(/?)(h[1-6]|p|div|li|ul|ol|dl|dt|dd|table|pre|blockquote|section|article|main|nav|aside|header"
    r"|footer|figure|figcaption|form|fieldset|hr|head|body|html|title|script|style|template|noscript|svg"
    r"|!--|!doctype)(?![\w-])([^<>]{0,2000})>?"
)
_RAW_END = {
    name: re.compile(rf"</{name}\s*>" if name != "!--" else "-->", re.IGNORECASE)
    for name in ("script", "style", "template", "svg", "!--")
}
_ANY_TAG = re.compile(r"<[^<>]{0,2000}>")
_VOID = ("hr", "!doctype")
_LONG_RAW = 300
"""Characters of a script, style or drawing that is a block of its own, as code."""


def html_blocks(text: str) -> Iterator[BlockStart]:
    """Yield the starts of the blocks of an HTML text."""
    waiting = 0
    """Where the block that comes next starts: tags that open before it belong to it."""
    depth: Counter[str] = Counter()
    heading = 0
    at = 0
    unfound: set[str] = set()
    """Names of elements, such as a script, that are never closed: they end with their tag."""
    closed = False
    """Whether only closing tags and white space follow the last block so far; they belong to it."""
    while (tag := _TAG.search(text, at)) is not None:
        closing, name = tag[1] == "/", tag[2].lower()
        if not depth["table"] and _has_words(text, at, tag.start()):
            yield waiting, *_kind(depth, heading)
            waiting, closed = tag.start(), True
        at = tag.end()
        closed = closed and closing
        waiting = after_space(text, at) if closed else waiting
        if closing:
            if name == "table" and depth["table"] == 1:
                yield waiting, "table", 0
                waiting, closed = after_space(text, at), True
            depth[name] = max(0, depth[name] - 1)
            heading = 0 if name == f"h{heading}" else heading
        elif name in _RAW_END:
            end = None if name in unfound else _RAW_END[name].search(text, tag.end(2))
            unfound.update([name] if end is None else ())
            at = at if end is None else end.end()
            if at - tag.start() >= _LONG_RAW and not depth["table"]:
                yield waiting, "code", 0
                waiting, closed = after_space(text, at), True
        elif name not in _VOID:
            lists = depth["ul"] + depth["ol"] if name == "li" else depth["dl"]
            for closed_by_it in {"li": ["li"], "dt": ["dt", "dd"], "dd": ["dt", "dd"]}.get(name, ()):
                depth[closed_by_it] = min(depth[closed_by_it], max(0, lists - 1))
            depth[name] += 1
            heading = int(name[1]) if name[0] == "h" and name[1:].isdigit() else heading
    if waiting < len(text) and (_has_words(text, waiting, len(text)) or not waiting):
        yield waiting, *_kind(depth, heading)


def _kind(depth: Counter[str], heading: int) -> tuple[BlockKind, int]:
    if depth["table"]:
        return "table", 0
    if heading:
        return "heading", heading
    if depth["pre"] and not depth["dt"]:
        return "code", 0
    if (depth["li"] or depth["dt"] or depth["dd"]) and (lists := depth["ul"] + depth["ol"] + depth["dl"]):
        return "item", lists + depth["dd"]
    return ("quote" if depth["blockquote"] else "paragraph"), 0


def _has_words(text: str, start: int, end: int) -> bool:
    """Whether there is more than tags and white space; a long part always counts."""
    part = text[start : min(end, start + 4000)]
    return end - start > 4000 or bool(_ANY_TAG.sub("", part).strip())
