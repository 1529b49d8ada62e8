"""What stands above the sentences: titles of documents, headings of sections, and heads of long tables.

A heading takes part in the passages and surroundings of the sentences below it, as if it were one more of
their sentences: its vector in their means, its words in their texts. Sentences stay those of the text.

The columns "heading_vectors", "heading_words" and "heading_titles" are ragged. The first row of a document,
and each row with another heading than the row before, has one vector, zero without a heading, the heading's
words, and in UTF-8 the titles that it is made of.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Self

import numpy as np
import numpy.typing as npt

from precise_rag.encoded import encode_documents
from precise_rag.index.groups import Groups
from precise_rag.index.table import Columns, Shard, ragged
from precise_rag.index.words import word_columns
from precise_rag.protocols import Encoder
from precise_rag.structure import read_structure
from precise_rag.titles import joined_titles, read_titles, saved_titles, titles_at, titles_of
from precise_rag.types import Document, FloatArray, IntArray, Titles
from precise_rag.vectors import dots, slice_places

WEIGHT = 12.0
"""Tokens of text that the vector of a heading weighs as much as; chosen on the development sets."""


def heading_columns(
    documents: Sequence[Document],
    columns: Sequence[Columns],
    encoder: Encoder,
    stop_words: str | tuple[str, ...],
    show_progress: bool,
) -> Iterator[Columns]:
    """Yield the columns of each document with those of its headings; equal ones are encoded once."""
    starts = [its["spans"][:, 0].tolist() for its in columns]
    above = [
        titles_at(titles_of(d.metadata), d.metadata, d.text, read_structure(d.text), places)
        for d, places in zip(documents, starts, strict=True)
    ]
    texts = [[joined_titles(titles) for titles in rows] for rows in above]
    distinct = sorted({text for rows in texts for text in rows if text})
    encoded = encode_documents(encoder, distinct, show_progress=show_progress)
    vectors = dict(zip(distinct, encoded, strict=True))
    nothing = np.zeros(encoder.dimension, dtype=np.float32)
    for its, rows, titles in zip(columns, texts, above, strict=True):
        begins = [i == 0 or text != rows[i - 1] for i, text in enumerate(rows)]
        of_runs = [vectors.get(text, nothing) for text in compress(rows, begins)]
        words = (text * new for text, new in zip(rows, begins, strict=True))
        saved = (saved_titles(one) * new for one, new in zip(titles, begins, strict=True))
        written = (np.frombuffer(one.encode("utf-8", "replace"), dtype=np.uint8) for one in saved)
        yield {
            **its,
            "heading_vectors.values": np.array(of_runs, dtype=np.float32).reshape(-1, encoder.dimension),
            "heading_vectors.lengths": np.array(begins, dtype=np.int32),
            **word_columns(words, stop_words, "heading_words"),
            **ragged("heading_titles", written, np.uint8),
        }


@dataclass(frozen=True, slots=True)
class Headings:
    """The headings of all rows of a shard.

    of_row: (n,) heading of each row. vectors: (k, d) of unit length, or zero.
    words, titles: numbers of the words of all headings, and UTF-8 of the titles that they are made of, one
        heading after another. ends, ends_of_titles: (k,) where each one's end.
    """

    of_row: IntArray
    vectors: FloatArray
    words: npt.NDArray[np.int32]
    ends: IntArray
    titles: npt.NDArray[np.uint8]
    ends_of_titles: IntArray

    @classmethod
    def of(cls, shard: Shard) -> Self | None:
        """Read the columns of a shard; None if the rows have no headings."""
        columns = shard.columns
        if "heading_vectors.lengths" not in columns:
            return None
        begins = np.asarray(columns["heading_vectors.lengths"]) > 0
        return cls(
            np.cumsum(begins) - 1,
            np.asarray(columns["heading_vectors.values"], dtype=np.float32),
            np.asarray(columns["heading_words.values"]),
            np.cumsum(np.asarray(columns["heading_words.lengths"])[begins], dtype=np.int64),
            np.asarray(columns["heading_titles.values"]),
            np.cumsum(np.asarray(columns["heading_titles.lengths"])[begins], dtype=np.int64),
        )

    def scores(self, vector: FloatArray) -> FloatArray:
        """(k,) cosine of each heading with a query's vector (d,)."""
        return dots(self.vectors, vector)

    def words_of(self, groups: Groups) -> tuple[npt.NDArray[np.int32], IntArray]:
        """Return the numbers of the words above groups of rows, and the group of each word."""
        begins = Groups.by_change(self.of_row, groups.of_row).starts
        headings = self.of_row[begins]
        sizes = np.diff(self.ends, prepend=0)[headings]
        words: npt.NDArray[np.int32] = self.words[slice_places(self.ends[headings] - sizes, sizes)]
        return words, np.repeat(groups.of_row[begins], sizes)

    def above(self, row: int) -> Titles:
        """Return the titles above a row."""
        heading, ends = self.of_row[row], self.ends_of_titles
        written = self.titles[ends[heading - 1] if heading else 0 : ends[heading]]
        return read_titles(written.tobytes().decode("utf-8", "replace"))
