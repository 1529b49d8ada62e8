"""Rows of a database as they are written and read."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from precise_rag.index.databases.counted import CountedRows
from precise_rag.types import FloatArray, IntArray, Span


class StoredSentence(NamedTuple):
    """A sentence as a row.

    start, end: place of the sentence in the document, without the white space around it.
    n_tokens: its tokens.
    passage: span of its passage.
    text: the document's text from the sentence to the next one.
    above: the title and the headings above it, as `saved_titles` writes them.
    vector: (d,) float32; its inner product with a query's vector is the dense score.
    words: numbers of the words in the sentence, ascending; see `word_number`.
    weights: (len(words),) float32 weight of each; the sum of `weight * idf` over a query's words orders
        rows by words.
    counted: the words in the sentence and around it; see `packed`.
    """

    start: int
    end: int
    n_tokens: int
    passage: Span
    text: str
    above: str
    vector: FloatArray
    words: IntArray
    weights: FloatArray
    counted: bytes


class StoredDocument(NamedTuple):
    """A document and its rows; a document without text has none.

    id: the document's id.
    digest: hash of the text and the title, which decide its rows.
    metadata: the document's metadata; JSON.
    sentences: its rows, in order.
    """

    id: str
    digest: str
    metadata: Mapping[str, Any]
    sentences: Sequence[StoredSentence]


class Pool(NamedTuple):
    """The best rows by vector and by words together, each with what scores it.

    keys: (n,) keys of the rows.
    doc_ids: (n,) the documents that they are of.
    passages: (n,) where the passage of each begins.
    dense: (n,) float32 scores by vector.
    counted: the words of the rows.
    """

    keys: Sequence[Any]
    doc_ids: Sequence[str]
    passages: IntArray
    dense: FloatArray
    counted: CountedRows


class Sample(NamedTuple):
    """Randomly chosen rows: their vectors (n, d), and their words."""

    vectors: FloatArray
    counted: CountedRows


class FoundSentence(NamedTuple):
    """A row as it is read back; see `StoredSentence`. place: its number in the document, from 0."""

    doc_id: str
    place: int
    start: int
    end: int
    n_tokens: int
    passage: Span
    text: str
    above: str
    metadata: Mapping[str, Any]
