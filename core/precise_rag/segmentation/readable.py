"""Sentences as the boundary models read them: their structure marked in one way, whatever the format."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from precise_rag.structure import TextFormat
from precise_rag.structure.marks import without_marks, without_tags


def as_heading(text: str) -> str:
    """Return a heading's words on one line, marked as in Markdown."""
    return f"# {' '.join(text.split())}"


def readable_sentences(
    sentences: Sequence[str], is_heading: npt.NDArray[np.bool_], text_format: TextFormat
) -> list[str]:
    """Return the sentences with each heading in the one form that the models know, and without tags of HTML.

    is_heading: (n,) whether a sentence is a heading. text_format: of the text.
    """
    readable = list(map(without_tags, sentences)) if text_format == "html" else list(sentences)
    for row in np.flatnonzero(is_heading).tolist():
        readable[row] = as_heading(without_marks(sentences[row]))
    return readable
