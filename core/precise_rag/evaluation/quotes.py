"""Where a quoted passage stands in a document."""

import re

from precise_rag.types import Span


def find_quote(text: str, quote: str) -> Span | None:
    """The first place of `quote` in `text`, exactly or up to white space and case; None if absent."""
    quote = quote.strip()
    if not quote:
        return None
    start = text.find(quote)
    if start >= 0:
        return Span(start, start + len(quote))
    pattern = r"\s+".join(map(re.escape, quote.split()))
    match = re.search(pattern, text, re.IGNORECASE)
    return Span(*match.span()) if match else None
