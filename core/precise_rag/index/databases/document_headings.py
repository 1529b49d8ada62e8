"""What stands above the sentences of documents: titles and headings, as vectors and words.

A heading takes part in the passages and surroundings below it: see `arrays.heading_columns`.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from precise_rag.encoded import encode_documents
from precise_rag.index.arrays.groups import Groups
from precise_rag.index.arrays.heading_columns import WEIGHT, headings_above
from precise_rag.index.arrays.words import word_numbers
from precise_rag.protocols import Encoder
from precise_rag.titles import joined_titles
from precise_rag.types import Document, FloatArray, IntArray, SentenceTable, Titles


class Headings(NamedTuple):
    """The headings of one document.

    of_row: (n,) heading of each sentence.
    above: the k headings, each with those above it. vectors: (k, d) of unit length, or zero.
    words: numbers of the words of each.
    """

    of_row: IntArray
    above: Sequence[Titles]
    vectors: FloatArray
    words: Sequence[IntArray]

    def sums(self, groups: Groups) -> FloatArray:
        """(n_groups, d) what is added to the token-weighted sum of each group."""
        added: FloatArray = WEIGHT * self.vectors[self.of_row[groups.starts]]
        return added

    def words_of(self, first: int, end: int) -> list[IntArray]:
        """The words of the headings of a range of sentences."""
        begins = [i for i in range(first, end) if i == first or self.of_row[i] != self.of_row[i - 1]]
        return [self.words[self.of_row[i]] for i in begins]


def read_headings(
    documents: Sequence[Document],
    tables: Sequence[SentenceTable],
    encoder: Encoder,
    stop_words: str | tuple[str, ...],
) -> list[Headings]:
    """Return the headings of documents; every distinct one is encoded once. tables: their sentences."""
    above = [headings_above(d, table.spans) for d, table in zip(documents, tables, strict=True)]
    distinct = sorted({joined_titles(titles) for rows in above for titles in rows if titles})
    vectors = dict(zip(distinct, encode_documents(encoder, distinct), strict=True))
    words = {text: word_numbers(text, stop_words) for text in ("", *distinct)}
    nothing = np.zeros(encoder.dimension, dtype=np.float32)
    made = []
    for rows in above:
        runs = list(dict.fromkeys(rows))
        texts = [joined_titles(titles) for titles in runs]
        made.append(
            Headings(
                np.array([runs.index(titles) for titles in rows], dtype=np.int64),
                runs,
                np.array([vectors.get(text, nothing) for text in texts], dtype=np.float32),
                [words[text] for text in texts],
            )
        )
    return made
