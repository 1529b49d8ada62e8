"""Base64 in a text, such as images, fonts and certificates: nobody reads it as text."""

import re
from itertools import chain, pairwise

from precise_rag.types import Span

_LEAST, _LONG = 500, 1200
"""Characters of a piece of base64, and those from which it is parted from the text around it."""
_SAMPLE = 2000
"""Characters that tell whether it is base64: long paths, names and sequences mix no capitals and digits."""
_BASE64 = re.compile(
    r"(?:!?\[[^\[\]\n]{0,40}\](?:\(|:[ \t])<?|<img\b[^<>]{0,300}?[\"'])?"
    r"(?:data:[\w/.+-]{1,60}(?:;[\w=.-]{1,60}){0,3},)?"
    r"(?<![A-Za-z0-9+/_-])(?:[A-Za-z0-9+/_-]{60,}+={0,2}(?:\r?\n[ \t]{0,8})?+)++"
    r"(?:[A-Za-z0-9+/_-]{1,59}={0,2}(?=[\"')>]|[ \t]{0,9}(?:[\r\n]|\Z)))?[\"')>/]{0,4}"
)


def base64_spans(text: str, least: int = _LONG) -> list[Span]:
    """Return where a text has base64 of at least so many characters, with the mark of an image around it."""
    found = _BASE64.finditer(text) if len(text) >= least else ()
    return [
        Span(*match.span()) for match in found if len(match[0]) >= least and _is_mixed(match[0][:_SAMPLE])
    ]


def is_base64(text: str) -> bool:
    """Check whether a piece of text is nearly all base64."""
    return 10 * sum(end - start for start, end in base64_spans(text, _LEAST)) > 8 * len(text)


def without_base64(text: str) -> str:
    """Return a text with spaces in place of base64."""
    places = [0, *chain(*base64_spans(text)), len(text)]
    parts = (text[start:end] for start, end in pairwise(places))
    return "".join(" " * len(part) if n % 2 else part for n, part in enumerate(parts))


def _is_mixed(text: str) -> bool:
    shares = (sum(map(of_kind, text)) / len(text) for of_kind in (str.isupper, str.islower, str.isdigit))
    return all(share >= least for share, least in zip(shares, (0.2, 0.05, 0.02), strict=True))
