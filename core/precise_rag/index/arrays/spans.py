"""Character spans of sentences."""

import numpy as np

from precise_rag.types import IntArray


def trim_spans(text: str, spans: IntArray) -> IntArray:
    """(n, 2) spans without the white space at their ends.

    text: the text that the spans are of.
    spans: (n, 2) start and end of each span.
    """
    trimmed = np.empty_like(spans)
    for row, (start, end) in enumerate(spans):
        piece = text[start:end]
        trimmed[row] = start + len(piece) - len(piece.lstrip()), start + len(piece.rstrip())
    return trimmed
