"""Base64 in a text, such as images, fonts and certificates: nobody reads it as text."""

import re
from itertools import chain, pairwise

from precise_rag.types import Span

_LONG, _AT_EDGE = 1200, 300
"""Characters from which base64 is parted from a text: within it (less may be a key), and at its ends."""
_SAMPLE = 2000
"""Characters that tell whether it is base64: long paths, names and sequences mix no capitals and digits."""
_BASE64 = re.compile(
    r"(?:!?\[[^\[\]\n]{0,40}\](?:\(|:[ \t])<?|<img\b[^<>]{0,300}?[\"'])?"
    r"(?:data:[\w/.+-]{1,60}(?:;[\w=.-]{1,60}){0,3},)?"
    r"(?<![A-Za-z0-9+/_-])(?:[A-Za-z0-9+/_-]{60,}+={0,2}(?:\r?\n[ \t]{0,8})?+)++"
    r"(?:[A-Za-z0-9+/_-]{1,59}={0,2}(?=[\"')>]|[ \t]{0,9}(?:[\r\n]|\Z)))?[\"')>/]{0,4}"
)


def base64_spans(text: str) -> list[Span]:
    """Return where a text has long base64, with the mark of an image around it."""
    first, last = len(text) - len(text.lstrip()), len(text.rstrip())
    spans = [Span(*found.span()) for found in _BASE64.finditer(text)] if last - first >= _AT_EDGE else []
    long = [one for one in spans if one.end - one.start >= _LONG or one.start <= first or one.end >= last]
    return [one for one in long if one.end - one.start >= _AT_EDGE and _is_mixed(text[slice(*one)][:_SAMPLE])]


def is_base64(text: str) -> bool:
    """Check whether a piece of text is base64, beside at most one word, as where a line of it is cut."""
    return len(text) >= _AT_EDGE and bool(base64_spans(text)) and len(without_base64(text).split()) < 2


def without_base64(text: str) -> str:
    """Return a text with spaces in place of base64."""
    places = [0, *chain(*base64_spans(text)), len(text)]
    parts = (text[start:end] for start, end in pairwise(places))
    return "".join(" " * len(part) if n % 2 else part for n, part in enumerate(parts))


def _is_mixed(text: str) -> bool:
    shares = (sum(map(of_kind, text)) / len(text) for of_kind in (str.isupper, str.islower, str.isdigit))
    return all(share >= least for share, least in zip(shares, (0.2, 0.05, 0.02), strict=True))
