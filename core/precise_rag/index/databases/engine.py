"""What a database engine does for an index, and the values that pass between them."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Literal, NamedTuple, Protocol

from precise_rag.errors import IndexFormatError
from precise_rag.filters import Filter
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

    keys: (n,) what the engine calls the rows.
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


class StateChangedError(Exception):
    """The state that a view reads is gone, as the engine keeps no old ones; the search begins again."""


def other_version(location: str, remedy: str) -> IndexFormatError:
    """The error for a collection with other columns than this version reads. remedy: what to do first."""
    return IndexFormatError(
        f"{location} was built by another version of this library, with other columns; to build it again, "
        f"{remedy}"
    )


class View(Protocol):
    """One state of the collection; a search reads it from start to end.

    A document is in it with all of its rows or none. `wanted` is a filter that rows must meet; None for all.
    """

    def count(self) -> int:
        """Number of rows."""
        ...

    def frequencies(self, terms: IntArray, wanted: Filter | None = None) -> tuple[IntArray, int]:
        """In how many rows' sentences each word is, and the number of rows; both may lag a little."""
        ...

    def sample(self, n: int, wanted: Filter | None = None) -> Sample:
        """About `n` rows at most, chosen at random; may lag a little."""
        ...

    def pool(
        self, vector: FloatArray, terms: IntArray, idf: FloatArray, size: int, wanted: Filter | None
    ) -> Pool:
        """The `size` best rows by vector, and those by words of which at least one is in the query."""
        ...

    def read(self, keys: Sequence[Any]) -> list[FoundSentence]:
        """Rows by key, in this order."""
        ...

    def between(
        self, ranges: Sequence[tuple[str, int, int]], by: Literal["start", "place"]
    ) -> list[list[FoundSentence]]:
        """For each (document, first, end) the rows whose start, or whose place, is in it, in order."""
        ...

    def metadata(self, doc_id: str) -> Mapping[str, Any] | None:
        """The metadata of a document; None if it is not there."""
        ...

    def some_metadata(self, most: int) -> list[Mapping[str, Any]]:
        """The metadata of at most `most` documents, whichever."""
        ...

    def has_field(self, field: str) -> bool:
        """Whether a document has a field in its metadata."""
        ...


class Engine(Protocol):
    """A collection in a database.

    Writers in any number of processes may change it at once: of two that write the same document, one wins,
    with all of its rows.
    """

    location: str

    def settings(self) -> dict[str, Any] | None:
        """What `create` was given; None if the collection does not exist."""
        ...

    def create(self, settings: Mapping[str, Any], dimension: int) -> None:
        """Make the collection; does nothing if another process has just made it."""
        ...

    def view(self) -> AbstractContextManager[View]:
        """Open the present state for reading."""
        ...

    def digests(self, ids: Iterable[str] | None = None) -> dict[str, str]:
        """The digests of the documents that are stored, by id; of all documents by default."""
        ...

    def sizes(self) -> dict[str, int]:
        """The number of rows of each document, by id."""
        ...

    def write(self, documents: Sequence[StoredDocument]) -> None:
        """Add documents, or replace those with the same ids; each wholly or not at all."""
        ...

    def describe(self, documents: Sequence[StoredDocument]) -> set[str]:
        """Replace the metadata of documents whose digest is still the same; their rows stay.

        documents: without sentences. Returns the ids of those that another writer has replaced or deleted.
        """
        ...

    def delete(self, ids: Sequence[str]) -> None:
        """Remove documents; unknown ids are ignored."""
        ...

    def optimize(self) -> None:
        """Build or update the indexes that make searches fast, and remove what they replace."""
        ...

    def close(self) -> None:
        """End connections."""
        ...
