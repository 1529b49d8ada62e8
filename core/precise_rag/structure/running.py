"""Running heads and feet of pages: short lines that come again, apart from the number of the page."""

import re
from collections import Counter
from collections.abc import Sequence
from itertools import chain
from operator import le

from precise_rag._data import packaged_text
from precise_rag.structure.marks import NUMBERED, ends_sentence
from precise_rag.types import Span

RUNNING_LINES = 3
"""Times that a running line occurs at least."""
_PAGE_END = re.compile(r"\f|\n(?:[ \t]*+\n){3}")
"""A form feed, or three blank lines."""
_LONGEST = 100
_WORD, _OF = packaged_text("structure/page_words.txt").splitlines()
_NUMBER = r"[ \t]{0,4}\d{1,4}(?:[ \t]?(?:[页頁쪽]|페이지|ページ))?[ \t]{0,4}"
_PAGE = re.compile(rf"(?i)\[?(?:{_WORD})?[ \t]{{0,4}}[-–—]?{_NUMBER}(?:(?:{_OF}){_NUMBER})?[-–—]?\]?")
PAGE_LINE = re.compile(rf"(?i)(?=.*[^\W\d_]){_PAGE.pattern[4:]}")
_NUMBER_FIRST = re.compile(r"\d{1,4}[ \t|·–—-]{1,20}(?=\S)")
_NUMBER_LAST = re.compile(rf"[ \t,|·–—-]{{1,20}}(?:\[?(?i:{_WORD})[ \t]{{0,4}})?\d{{1,4}}\]?\Z")
_LEADERS = re.compile(r"(?m)(?:[.…·][ \t]{0,3}){4}(\d{1,4})[ \t]{0,40}$")
"""Dots before a page in a table of contents, whose lines begin with numbers and whose pages count up."""
_FEWEST_CHAPTERS, _SHARE_IN_ORDER = 5, 0.8


def running_lines(texts: Sequence[str]) -> list[bool]:
    """Return whether each of n texts is a running head or foot among them.

    It is a line without a full stop or colon that occurs several times, with another number of the page or
    with none; or such a number alone. One word with a number, as in "Chapter 3", is none.
    """
    keys = [running_key(text) for text in texts]
    counts = Counter(keys)
    return [bool(key) and counts[key] >= RUNNING_LINES for key in keys]


def without_page_lines(text: str, spans: Sequence[Span]) -> Sequence[Span]:
    """Leave out the spans that are running lines beside the end of a page, or contents; none if all are."""
    texts = [text[start:end] for start, end in spans]
    before = ("\f", *(one[len(one.rstrip()) :] for one in texts))
    beside = [one if _PAGE_END.search(space + one) else "" for space, one in zip(before, texts, strict=False)]
    numbered = [any(map(NUMBERED.match, one.strip().split("\n"))) for one in texts]
    ends = [_LEADERS.findall(one) * is_of for one, is_of in zip(texts, numbered, strict=True)]
    pages = [*map(int, chain.from_iterable(ends))]
    in_order = sum(map(le, pages, pages[1:]))
    has_contents = len(pages) >= _FEWEST_CHAPTERS and in_order >= _SHARE_IN_ORDER * (len(pages) - 1)
    return [
        span
        for span, one, of_it, runs in zip(spans, texts, ends, running_lines(beside), strict=True)
        if not runs and not (has_contents and 2 * len(of_it) > one.strip().count("\n") + 1)
    ] or spans


def running_key(text: str) -> str:
    """Return a line without the number of its page, the same on all pages; empty if it is no running line."""
    words = text.strip()
    if not words or len(words) > _LONGEST or "\n" in words:
        return ""
    if _PAGE.fullmatch(words):
        return "#"
    if not words[0].isalnum() or words[-1] == ":" or ends_sentence(words):
        return ""
    for number in (_NUMBER_FIRST, _NUMBER_LAST):
        rest = number.sub("", words, count=1)
        if rest != words and len(rest.split()) > 1:
            return rest
    return words
