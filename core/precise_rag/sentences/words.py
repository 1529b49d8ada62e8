"""What of a sentence is read and sent: its words, without white space, rules and loose tags around them."""

import re
from collections import Counter

import numpy as np

from precise_rag.types import IntArray

_TAG = re.compile(r"</?[A-Za-z][^<>]{0,2000}>")
_UNSEEN = re.compile(
    r"<!--(?:(?!--)[^\n]){0,300}-->"
    r"|(?m:^[ \t]{0,40}(?:\.\. _[^\n]{1,200}:|\.\. index::[^\n]{0,300})[ \t]{0,40}$)"
)
"""A comment on one line, or a line of reStructuredText that names a place or adds to an index."""
_UNSEEN_STARTS = ("<!--", ".. ")
_WORD = re.compile(r"[^\W_]")
_LAST_WORD = re.compile(r"[^\W_](?=[\W_]*+\Z)")
_RULE_MARKS = r"\-=+*_~#^:.─-╿—–"
_IS_RULE = re.compile(rf"[\s{_RULE_MARKS}]*")
_RULE_LINE = re.compile(rf"(?m)^[ \t]{{0,40}}[|{_RULE_MARKS}][ \t|{_RULE_MARKS}]{{2,2000}}$\n?")


_FIRST_TAG = re.compile(r"\s*<(?P<closing>/?)(?P<name>[A-Za-z][\w-]{0,20})[^<>]{0,300}>")
_LAST_TAG = re.compile(r"<(?P<closing>/?)(?P<name>[A-Za-z][\w-]{0,20})[^<>]{0,300}>\s*\Z")
_ANY_TAG = re.compile(r"<(/?)([A-Za-z][\w-]{0,20})[^<>]{0,300}>")
_TAG_LENGTH = 400
_TELLING = frozenset(("li", "dt", "dd", "pre", "code", "table", "tr", "td", "th"))
"""Tags that tell what a text is by opening before it."""
_TEXT_TAGS = _TELLING | {
    *("p", "div", "span", "a", "b", "i", "em", "strong", "ul", "ol", "dl", "tbody", "thead", "blockquote"),
    *("section", "article", "main", "header", "footer", "body", "html", "font", "center", "br", "tt"),
}


def has_words(text: str) -> bool:
    """Check whether a text has a letter or a digit, apart from tags and comments, and names of places."""
    if any(start in text for start in _UNSEEN_STARTS):
        text = _UNSEEN.sub("", text)
    return _WORD.search(_TAG.sub("", text) if "<" in text else text) is not None


def trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the part `text[start:end]` without the white space around it, and without rules above and below.

    A rule is a line without a word that is drawn with marks, such as `+----+` or `* * *`; the line below the
    head of a Markdown table is none. If all lines are indented, as in code, the first one keeps its indent.
    Comments at the ends go, too, and tags whose other half is not in the part.
    """
    start, end = _without_unseen(text, start, end)
    piece = text[start:end]
    if "\n" not in piece.strip():
        lead = len(piece) - len(piece.lstrip())
        return start + lead, start + max(lead, len(piece.rstrip()))
    first, last = _WORD.search(piece), _LAST_WORD.search(piece)
    if first is None or last is None:
        return start, start + len(piece.rstrip())
    begin, stop = 0, len(piece)
    for line in re.finditer(r"[^\n]*\n", piece[: first.start()]):
        if _IS_RULE.fullmatch(line[0]) is None:
            break
        begin = line.end()
    lines = piece[last.end() :].split("\n")
    while len(lines) > 1 and _IS_RULE.fullmatch(lines[-1]):
        stop -= len(lines.pop()) + 1
    kept = piece[begin:stop].rstrip()
    return start + begin + _spare_indent(kept), start + begin + len(kept)


def _without_unseen(text: str, start: int, end: int) -> tuple[int, int]:
    """The part without comments, names of places and loose tags at its ends; as it is if it has no word."""
    piece = text[start:end]
    head, tail = piece[:_TAG_LENGTH].lstrip(), piece[-_TAG_LENGTH:].rstrip()
    marks = head.startswith(("<", *_UNSEEN_STARTS)) or tail.endswith((">", ":"))
    if not (marks or ".. index::" in tail) or not has_words(piece):
        return start, end
    unseen = [(match.start(), match.end()) for match in _UNSEEN.finditer(piece)]
    tags: Counter[str] = Counter()
    """How many more of a kind of tag open than close."""
    for match in _ANY_TAG.finditer(piece):
        tags[match[2].lower()] += -1 if match[1] else 1
    first, last = 0, len(piece)
    while (step := _unseen_before(piece, first, unseen, tags)) > first:
        first = step
    while (step := _unseen_after(piece, last, unseen, tags)) < last:
        last = step
    return start + first, start + last


def _unseen_before(piece: str, first: int, unseen: list[tuple[int, int]], tags: Counter[str]) -> int:
    """Where a comment or a loose tag ends that the piece begins with at `first`."""
    for begin, end in unseen:
        if begin >= first and not piece[first:begin].strip():
            return end
    tag = _FIRST_TAG.match(piece, first)
    if tag is None or (name := tag["name"].lower()) not in _TEXT_TAGS:
        return first
    if tag["closing"]:
        tags[name] += 1
        return tag.end()
    if tags[name] > 0 and name not in _TELLING:
        tags[name] -= 1
        return tag.end()
    return first


def _unseen_after(piece: str, last: int, unseen: list[tuple[int, int]], tags: Counter[str]) -> int:
    """Where a comment or a loose tag begins that the piece ends with at `last`."""
    for begin, end in unseen:
        if end <= last and not piece[end:last].strip():
            return begin
    shown = piece[max(last - _TAG_LENGTH, 0) : last]
    tag = _LAST_TAG.search(shown)
    if tag is None or (name := tag["name"].lower()) not in _TEXT_TAGS:
        return last
    is_loose = not tag["closing"] or tags[name] < 0
    tags[name] += (1 if tag["closing"] else -1) if is_loose else 0
    return last - len(shown) + tag.start() if is_loose else last


def _spare_indent(text: str) -> int:
    """The white space before a text; none if the further lines are indented as far."""
    indent = len(text) - len(text.lstrip())
    further = [line for line in text.split("\n")[1:] if line.strip()] if indent else []
    is_common = further and all(line.startswith(text[:indent]) for line in further)
    return 0 if is_common else indent


def trim_spans(text: str, spans: IntArray) -> IntArray:
    """(n, 2) spans without the white space and the rules at their ends; see `trimmed`.

    text: the text that the spans are of.
    spans: (n, 2) start and end of each span.
    """
    trimmed_spans = [trimmed(text, start, end) for start, end in spans.tolist()]
    return np.array(trimmed_spans, dtype=np.int64).reshape(-1, 2)


def without_rules(text: str) -> str:
    """Return what is read of a sentence: without the rules between its lines and the space around it."""
    return (_RULE_LINE.sub("", text) if "\n" in text else text).strip()
