"""What stands above the sentences: titles of documents, headings of sections, and heads of long tables.

A heading takes part in the passages and surroundings of the sentences below it, as if it were one more of
their sentences: its vector in their means, its words in their texts. Sentences stay those of the text.

The columns "heading_vectors" and "heading_words" are ragged. The first row of a document, and each row with
another heading than the row before, has one vector, zero without a heading, and the heading's words.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from precise_rag.index.arrays.collection import Columns
from precise_rag.index.arrays.groups import Groups
from precise_rag.structure import read_structure
from precise_rag.titles import below, joined_titles, read_titles, saved_titles, titles_of
from precise_rag.types import Document, FloatArray, IntArray, Titles
from precise_rag.vectors import dots, slice_places

WEIGHT = 12.0
"""Tokens of text that the vector of a heading weighs as much as; chosen by
`python -m benchmarks.retrieval.headings`."""


def headings_above(document: Document, spans: IntArray) -> list[Titles]:
    """Return what stands above each of the (n, 2) sentences of a document: see `Structure.above`."""
    titles = titles_of(document.metadata)
    structure = read_structure(document.text)
    return [below(titles, *structure.above(int(start))) for start in spans[:, 0]]


def heading_columns(
    above: Sequence[Sequence[Titles]],
    encode: Callable[[Sequence[str]], FloatArray],
    words: Callable[[Sequence[str]], Columns],
    dimension: int,
) -> list[Columns]:
    """Return the columns of each document; every distinct heading is encoded once.

    above: what stands above each row of each document. encode: turns k texts into (k, d) vectors. words:
    makes the ragged column "words" of texts. dimension: d.
    """
    texts = [[joined_titles(titles) for titles in rows] for rows in above]
    distinct = sorted({text for rows in texts for text in rows if text})
    vectors = dict(zip(distinct, encode(distinct), strict=True))
    nothing = np.zeros(dimension, dtype=np.float32)
    made: list[Columns] = []
    for rows in texts:
        begins = np.array([i == 0 or text != rows[i - 1] for i, text in enumerate(rows)], dtype=bool)
        runs = [text for text, new in zip(rows, begins.tolist(), strict=True) if new]
        columns = words(runs)
        lengths = np.zeros(len(rows), dtype=np.int32)
        lengths[begins] = columns["words.lengths"]
        made.append(
            {
                "heading_vectors.values": np.array(
                    [vectors.get(text, nothing) for text in runs], dtype=np.float32
                ).reshape(-1, dimension),
                "heading_vectors.lengths": begins.astype(np.int32),
                "heading_words.values": columns["words.values"],
                "heading_words.lengths": lengths,
            }
        )
    return made


@dataclass(frozen=True, slots=True)
class Headings:
    """The headings of all rows.

    of_row: (n,) heading of each row. vectors: (k, d) of unit length, or zero. words: numbers of the words of
    all headings, one heading after another. ends: (k,) where each heading's words end in `words`.
    """

    of_row: IntArray
    vectors: FloatArray
    words: npt.NDArray[np.int32]
    ends: IntArray

    @classmethod
    def of(cls, columns: Columns) -> Headings | None:
        """Read the columns; None if the rows have none."""
        if "heading_vectors.lengths" not in columns:
            return None
        begins = np.asarray(columns["heading_vectors.lengths"]) > 0
        lengths = np.asarray(columns["heading_words.lengths"])[begins]
        return cls(
            np.cumsum(begins) - 1,
            np.asarray(columns["heading_vectors.values"], dtype=np.float32),
            np.asarray(columns["heading_words.values"]),
            np.cumsum(lengths, dtype=np.int64),
        )

    def scores(self, vector: FloatArray) -> FloatArray:
        """(k,) cosine of each heading with a query's vector (d,)."""
        return dots(self.vectors, vector)

    def words_with(self, columns: Columns, groups: Groups) -> tuple[npt.NDArray[np.int32], IntArray]:
        """Words of each group with the words of its headings before them.

        Returns the word numbers of all groups, one after another, and (n_groups,) how many each has.
        """
        opens = np.zeros(len(self.of_row), dtype=bool)
        opens[groups.starts] = True
        opens[1:] |= self.of_row[1:] != self.of_row[:-1]
        sizes = np.diff(self.ends, prepend=0)
        text_sizes = np.asarray(columns["words.lengths"], dtype=np.int64)
        lengths = np.stack([np.where(opens, sizes[self.of_row], 0), text_sizes], axis=1)
        starts = np.stack(
            [(self.ends - sizes)[self.of_row], len(self.words) + np.cumsum(text_sizes) - text_sizes], axis=1
        )
        both = np.concatenate([self.words, np.asarray(columns["words.values"])])
        per_group = np.add.reduceat(lengths.sum(axis=1), groups.starts)
        words: npt.NDArray[np.int32] = both[slice_places(starts.ravel(), lengths.ravel())]
        return words, per_group


@dataclass(frozen=True, slots=True)
class HeadingTexts:
    """The titles above each row, as text.

    of_row: (n,) heading of each row. values: UTF-8 of all headings, one after another. ends: (k,) where each
    one's ends in `values`.
    """

    of_row: IntArray
    values: npt.NDArray[np.uint8]
    ends: IntArray

    @classmethod
    def of(cls, headings: Headings, kept: Columns) -> HeadingTexts:
        """Join the headings of rows with the arrays of `heading_texts`."""
        return cls(headings.of_row, kept["values"], kept["ends"])

    def titles(self, row: int) -> Titles:
        """Return the titles above a row."""
        heading = self.of_row[row]
        first = self.ends[heading - 1] if heading else 0
        return read_titles(self.values[first : self.ends[heading]].tobytes().decode("utf-8", "replace"))


def heading_texts(documents: Sequence[Document], columns: Columns, offsets: IntArray) -> Columns:
    """Return "values" and "ends" of `HeadingTexts`, from the texts of documents.

    columns, offsets: of the documents' collection.
    """
    begins = np.asarray(columns["heading_vectors.lengths"]) > 0
    written: list[bytes] = []
    for document, first, end in zip(documents, offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        spans = columns["spans"][first:end][begins[first:end]]
        saved = map(saved_titles, headings_above(document, spans))
        written += [text.encode("utf-8", "replace") for text in saved]
    ends = np.cumsum([len(text) for text in written], dtype=np.int64)
    return {"values": np.frombuffer(b"".join(written), dtype=np.uint8), "ends": ends}
