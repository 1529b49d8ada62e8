"""Running heads and feet of pages: short lines that come again, apart from the number of the page."""

import re
from collections import Counter
from collections.abc import Sequence

from precise_rag.structure.marks import ends_sentence

RUNNING_LINES = 3
"""Times that a running line occurs at least."""

_LONGEST = 100
_PAGE = re.compile(
    r"(?i:page|seite|página|стр\.|p\.|s\.)?[ \t]{0,4}[-–—]?[ \t]{0,4}\d{1,4}"
    r"(?:[ \t]{0,4}(?i:of|/|von|de|из)[ \t]{0,4}\d{1,4})?[ \t]{0,4}[-–—]?"
)
_NUMBER_FIRST = re.compile(r"\d{1,4}[ \t|·–—-]{1,20}(?=\S)")
_NUMBER_LAST = re.compile(r"(?<=\S)[ \t,|·–—-]{1,20}(?:(?i:page|seite|página|p\.|s\.)[ \t]{0,4})?\d{1,4}\Z")


def running_lines(texts: Sequence[str]) -> list[bool]:
    """Return whether each of n texts is a running head or foot among them.

    It is a line without a full stop or colon that occurs several times, with another number of the page or
    with none; or such a number alone. One word with a number, as in "Chapter 3", is none.
    """
    keys = [running_key(text) for text in texts]
    counts = Counter(keys)
    return [bool(key) and counts[key] >= RUNNING_LINES for key in keys]


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
