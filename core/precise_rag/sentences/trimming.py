"""What of a sentence is read and sent: its words, without white space, rules and loose tags around them."""

import re
from collections import Counter
from itertools import takewhile

import numpy as np

from precise_rag.structure.base64_runs import is_base64
from precise_rag.structure.marks import LINK_TARGET, after_space, without_tags
from precise_rag.types import IntArray

_TAG = re.compile(r"</?[A-Za-z][^<>]{0,2000}>")
_FILLED = re.compile(r"<(?!(?:a|link|meta|path)\b)[A-Za-z][^<>]{0,2000}[\"']\s{0,9}/>", re.IGNORECASE)
"""A tag of XML whose values are its words: `<employee name="Ada"/>`."""
_IMAGES = rf"(?:(?:!\[[^\[\]\n]{{0,40}}\]{LINK_TARGET}|<img\b[^<>]{{0,600}}>)[ \t]{{0,9}}){{0,3}}"
_INNER_LINK = rf"{_IMAGES}\[{_IMAGES}[^\[\]\n]{{0,200}}\]\(#[^()\n]{{0,200}}\)[ \t]{{0,9}}"
_UNSEEN = re.compile(
    r"<!--(?:(?!--)[^\n]){0,300}-->|<(?:img|br|hr|source)\b[^<>]{0,600}>"
    rf"|!\[[^\[\]\n]{{0,40}}\]{LINK_TARGET}|\[!\[[^\[\]\n]{{0,99}}\]{LINK_TARGET}[ \t]{{0,9}}\]{LINK_TARGET}"
    r"|(?m:^[ \t]{0,40}(?:\.\. _[^\n]{1,200}:"
    r"|\.\. (?:index|(?:\|[^|\n]{1,99}\| )?image)::[^\n]{0,600}(?:\n[ \t]{1,20}\w{0,9}:[^\n]{0,600}){0,9}"
    rf"|(?:(?:[-*+]|\d{{1,3}}[.)])[ \t]{{1,8}}|(?:{_INNER_LINK}[|•·/–-][ \t]{{0,9}}){{1,40}}){_INNER_LINK}"
    r"|(?:\|[^\W\d_][^\s|]{1,60}\| ){2,40}\|[^\W\d_][^\s|]{1,60}\||"
    r"(?![^\s(]{1,60}\(\d)\S[^\n]{1,99}[ \t]{2}[^\sa-z(]{1,60}\(\d\w{0,3}\))[ \t]{0,40}$)"
)
"""A comment on one line; an image with a short name, as badges are; a line of reStructuredText that names a
place or an image, adds to an index or shows images; a line of links to places in the same text; the foot of
a page of a manual: "GNU coreutils 9.1   May 2023   LS(1)"."""
_EMPTY = re.compile(r"<([A-Za-z][\w-]{0,20})\b[^<>]{0,600}>\s*+</\1>")
_WORD = re.compile(r"[^\W_]")
_LAST_WORD = re.compile(r"[^\W_](?=[\W_]*+\Z)")
_RULE_MARKS = r"\-=+*_~#^:.─-╿—–"
_IS_RULE = re.compile(rf"[\s{_RULE_MARKS}]*")
_RULE_LINE = re.compile(rf"(?m)^[ \t]{{0,40}}[|{_RULE_MARKS}][ \t|{_RULE_MARKS}]{{2,2000}}$\n?")
_ANY_TAG = r"<(?P<closing>/?)(?P<name>[A-Za-z][\w-]{0,20})[^<>]{0,300}>"
_LAST = re.compile(rf"{_ANY_TAG}\Z")
_TAGS = re.compile(_ANY_TAG)
_TELLING = frozenset(("li", "dt", "dd", "pre", "code", "table", "tr", "td", "th"))
"""Tags that tell what a text is by opening before it."""
_TEXT_TAGS = _TELLING | {
    *("p", "div", "span", "a", "b", "i", "em", "strong", "ul", "ol", "dl", "tbody", "thead", "blockquote"),
    *("section", "article", "main", "header", "footer", "body", "html", "font", "center", "br", "tt"),
}
_MARKUP = re.compile(rf"</(?:{'|'.join(sorted(_TEXT_TAGS))})>", re.IGNORECASE)


def has_words(text: str) -> bool:
    """Check whether a text has a letter or a digit, apart from comments, names of places, and tags."""
    shown = _UNSEEN.sub("", text)
    return bool(_WORD.search(_TAG.sub("", shown)) or _FILLED.search(shown))


def trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the part `text[start:end]` without the white space around it, and without rules above and below.

    A rule is a line without a word that is drawn with marks, such as `+----+` or `* * *`; the line below the
    head of a Markdown table is none. If all lines are indented, as in code, the first one keeps its indent.
    Comments at the ends go, too, and tags whose other half is not in the part.
    """
    start, end = _without_empty_ends(text, start, end)
    piece = text[start:end]
    if "\n" not in piece.strip():
        lead = len(piece) - len(piece.lstrip())
        return start + lead, start + max(lead, len(piece.rstrip()))
    first, last = _WORD.search(piece), _LAST_WORD.search(piece)
    if first is None or last is None:
        return start, start + len(piece.rstrip())
    above, below = piece[: first.start()].split("\n")[:-1], piece[last.end() :].split("\n")[1:]
    rules = (takewhile(_IS_RULE.fullmatch, lines) for lines in (above, below[::-1]))
    begin, n_after = (sum(len(line) + 1 for line in lines) for lines in rules)
    kept = piece[begin : len(piece) - n_after].rstrip()
    return start + begin + _spare_indent(kept), start + begin + len(kept)


def _without_empty_ends(text: str, start: int, end: int) -> tuple[int, int]:
    """The part without what has no words at its ends; as it is if it has no word.

    Such are comments, images and the like, elements of HTML without words, and tags without their other half.
    """
    piece = text[start:end]
    if not has_words(piece):
        return start, end
    shown = piece
    for empty in (_UNSEEN, *[_EMPTY] * 4):  # so many may be in each other
        shown = empty.sub(lambda match: " " * len(match[0]), shown)
    tags: Counter[str] = Counter()
    """How many more of a kind of tag open than close."""
    for match in _TAGS.finditer(shown):
        tags[match["name"].lower()] += -1 if match["closing"] else 1
    first, last = 0, len(shown.rstrip())
    while (tag := _TAGS.match(shown, after_space(shown, first), last)) and _is_spare(tag, tags, at_end=False):
        first = tag.end()
    while (tag := _LAST.search(shown, max(last - 400, first), last)) and _is_spare(tag, tags, at_end=True):
        last = len(shown[: tag.start()].rstrip())
    first = after_space(shown, first)
    return start + (first if piece[:first].strip() else 0), start + last


def _is_spare(found: re.Match[str], tags: Counter[str], *, at_end: bool) -> bool:
    """Whether a tag at an end of a piece is not needed there; it is then taken off `tags`."""
    name, more = found["name"].lower(), -1 if found["closing"] else 1
    is_loose = at_end == (more == 1) or (tags[name] * more > 0 and (at_end or name not in _TELLING))
    if name not in _TEXT_TAGS or not is_loose:
        return False
    tags[name] -= more
    return True


def _spare_indent(text: str) -> int:
    """The white space before a text; none if the further lines are indented as far."""
    indent = len(text) - len(text.lstrip())
    further = [line for line in text.split("\n")[1:] if line.strip()] if indent else []
    return 0 if further and all(line.startswith(text[:indent]) for line in further) else indent


def trim_spans(text: str, spans: IntArray) -> IntArray:
    """(n, 2) spans of a text without the white space and the rules at their ends; see `trimmed`."""
    return np.array([trimmed(text, *span) for span in spans.tolist()], dtype=np.int64).reshape(-1, 2)


def without_markup(text: str) -> str:
    """Return a sentence of any format as it is read: without its tags, if it closes one and is not code.

    Nothing is read of base64.
    """
    if is_base64(text):
        return ""
    if "</" not in text or "`" in text or _MARKUP.search(text) is None:
        return text
    bare = without_tags(text)
    return bare if has_words(bare) else text


def without_rules(text: str) -> str:
    """Return what is read of a sentence: without rules, images and the space around it."""
    shown = _UNSEEN.sub("", text)
    return (_RULE_LINE.sub("", shown) if "\n" in shown else shown).strip()
