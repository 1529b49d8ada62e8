"""What of a sentence is read and sent: its words, without the white space and the rules around them."""

import re

import numpy as np

from precise_rag.types import IntArray

_TAG = re.compile(r"</?[A-Za-z][^<>]{0,2000}>")
_WORD = re.compile(r"[^\W_]")
_LAST_WORD = re.compile(r"[^\W_](?=[\W_]*+\Z)")
_RULE_MARKS = r"\-=+*_~#^:.─-╿—–"
_IS_RULE = re.compile(rf"[\s{_RULE_MARKS}]*")
_RULE_LINE = re.compile(rf"(?m)^[ \t]{{0,40}}[|{_RULE_MARKS}][ \t|{_RULE_MARKS}]{{2,2000}}$\n?")


def has_words(text: str) -> bool:
    """Check whether a text has a letter or a digit, apart from tags of HTML."""
    return _WORD.search(_TAG.sub("", text) if "<" in text else text) is not None


def trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the part `text[start:end]` without the white space around it, and without rules above and below.

    A rule is a line without a word that is drawn with marks, such as `+----+` or `* * *`; the line below the
    head of a Markdown table is none. If all lines are indented, as in code, the first one keeps its indent.
    """
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
    found = [trimmed(text, start, end) for start, end in spans.tolist()]
    return np.array(found, dtype=np.int64).reshape(-1, 2)


def without_rules(text: str) -> str:
    """Return what is read of a sentence: without the rules between its lines and the space around it."""
    return (_RULE_LINE.sub("", text) if "\n" in text else text).strip()
