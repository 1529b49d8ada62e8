"""An index whose rows live in PostgreSQL."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from typing_extensions import override

from precise_rag.checks import as_path, items_of, of_kind, shown
from precise_rag.encoded import encode_queries
from precise_rag.errors import EmptyIndexError, IndexFormatError, InputError
from precise_rag.index.databases.engine import PostgresEngine
from precise_rag.index.databases.rows import StoredDocument, checked_document, digest, rows_of_documents
from precise_rag.index.databases.search import around, find
from precise_rag.index.hybrid import SEARCH_SETTINGS, HybridSettings
from precise_rag.index.index import query_direction, unique_documents
from precise_rag.index.sentence_index import SentenceQuery, SentenceSearch
from precise_rag.index.settings import check_made, check_opened, made_with, usable_settings
from precise_rag.protocols import Encoder
from precise_rag.types import Candidate, Document, ScoreScale, Stretch

_BATCH = 256
"""Documents that are read, encoded and written together."""


@dataclass(frozen=True, kw_only=True)
class DatabaseSettings(HybridSettings):
    """Settings of DatabaseIndex: those of HybridIndex, with other defaults.

    precision: of the vectors, "float16" or "float32".
    pool: smaller, as each row of the pool is read from the database.
    """

    precisions: ClassVar[tuple[str, ...]] = ("float16", "float32")
    precision: Literal["float16", "float32"] = "float16"  # type: ignore[assignment]
    pool: int = 400


class DatabaseIndex(SentenceSearch):
    """Sentences scored as in HybridIndex, in rows of a PostgreSQL database.

    Any number of processes may read and change the collection at once. A document is found with all of its
    sentences or not at all, and a crash leaves the old state of each document or the new one. Nothing has
    to be saved.

    location: a connection URI of PostgreSQL with pgvector; see `PostgresEngine`.
    encoder: the encoder that the collection was made with, or is to be made with.
    settings: fields of `DatabaseSettings`, for a collection that does not exist yet; of an existing one,
        those that only a search reads may differ.
    Raises IndexFormatError if the collection was made with another encoder, InputError for another setting.

    `Candidate.scores` has "dense", "bm25" (of the sentence) and "bm25_passage". Differs from HybridIndex: a
    row has one vector, so a search cannot change `alpha`.
    """

    kind: ClassVar[str] = "database"
    score_scale: ClassVar[ScoreScale] = "rank"
    _settings_type = DatabaseSettings

    def __init__(self, location: str, encoder: Encoder, **settings: Any) -> None:
        self.engine = PostgresEngine(location)
        made = read_settings(self.engine)
        self._exists = made is not None
        if made is not None:
            check_opened(self.engine.location, made, encoder, settings, SEARCH_SETTINGS)
            settings = {**made["settings"], **settings}
        super().__init__(encoder, **settings)

    @classmethod
    def build(
        cls,
        documents: Iterable[Document],
        encoder: Encoder,
        *,
        location: str,
        show_progress: bool = False,
        **settings: Any,
    ) -> Self:
        """Open or make a collection and add documents; see the class and `add`."""
        index = cls(location, encoder, **settings)
        index.add(documents, show_progress=show_progress)
        return index

    def __len__(self) -> int:
        if not self._is_made():
            return 0
        with self.engine.view() as view:
            return view.count()

    @property
    def document_ids(self) -> tuple[str, ...]:
        """Ids of all documents, including those without text, in no order."""
        return self.engine.ids() if self._is_made() else ()

    def fields(self) -> set[str]:
        """Return the names of all fields in the metadata of documents."""
        with self.engine.view() as view:
            return view.fields() if self._is_made() else set()

    def document(self, identifier: str) -> Document:
        """Return a document by its id. Raises InputError if it is not in the index.

        White space before the first sentence is written as spaces, and a document without sentences is empty.
        """
        if self._is_made():
            with self.engine.view() as view:
                metadata = view.metadata(of_kind("identifier", identifier, str))
                (rows,) = view.between([(identifier, 0, 2**31 - 1)], "place")
                text = " " * rows[0].start + "".join(row.text for row in rows) if rows else ""
            if metadata is not None:
                return Document(identifier, text, metadata)
        raise InputError(f"the index has no document {shown(identifier)}")

    def add(self, documents: Iterable[Document], *, show_progress: bool = False) -> None:
        """Add documents, or replace those whose ids are in the collection.

        A document with the same text as before is not encoded again; only its metadata changes. Documents
        are read, encoded and written in batches, so they may come from a generator; if anything is raised,
        earlier batches stay. A list is checked as a whole before anything is written.

        documents: the documents; their metadata must be JSON.
        """
        remaining: Iterator[Document] = map(checked_document, unique_documents(documents))
        if isinstance(documents, Sequence):
            remaining = iter(list(remaining))
        while batch := list(islice(remaining, _BATCH)):
            self._write(batch, show_progress)

    def delete(self, ids: Iterable[str]) -> None:
        """Delete documents by id. Raises InputError, and changes nothing, if an id is unknown."""
        wanted = {ids} if isinstance(ids, str) else set(items_of("ids", ids, str))
        if not wanted:
            return
        known = self.engine.digests(wanted) if self._is_made() else {}
        if unknown := sorted(wanted - known.keys()):
            raise InputError(f"no document {unknown[0]!r} in the index ({len(unknown)} unknown ids)")
        self.engine.delete(sorted(wanted))

    def optimize(self) -> None:
        """Build or update the database's indexes; after large changes, searches are faster for it."""
        if self._is_made():
            self.engine.optimize()

    def close(self) -> None:
        """End the connections to the database; the next use opens them again."""
        self.engine.close()

    @override
    def _find(self, asked: SentenceQuery) -> list[Candidate]:
        if asked.alpha is not None and asked.alpha != self.settings.alpha:
            raise InputError(
                f"alpha is {self.settings.alpha} in this collection, got {shown(asked.alpha)}: the vectors "
                "in its rows are weighted by it; build another collection with that alpha"
            )
        if not self._is_made():
            raise EmptyIndexError("the index holds no documents and no text; add documents first")
        vector = encode_queries(self.encoder, [asked.text])[0] if asked.vector is None else asked.vector
        direction = query_direction(vector, self.encoder.dimension)
        with self.engine.view() as view:
            return find(view, asked, self.settings, direction, self.encoder)

    @override
    def neighbours(self, sentences: Sequence[Candidate], reach: int) -> list[Stretch]:
        if not sentences or not self._is_made():
            return []
        with self.engine.view() as view:
            return around(view, sentences, reach)

    def _is_made(self) -> bool:
        """Whether the collection exists. Raises as the class if another process has made it otherwise."""
        if not self._exists and (made := read_settings(self.engine)) is not None:
            check_opened(self.engine.location, made, self.encoder, vars(self.settings), SEARCH_SETTINGS)
            self._exists = True
        return self._exists

    def _write(self, batch: Sequence[Document], show_progress: bool) -> None:
        digests = {document.id: digest(document, self.settings) for document in batch}
        known = self.engine.digests(digests) if self._is_made() else {}
        new = [document for document in batch if known.get(document.id) != digests[document.id]]
        same = [document for document in batch if known.get(document.id) == digests[document.id]]
        rows = rows_of_documents(new, self.encoder, self.settings, show_progress)
        if not self._is_made():
            self.engine.create(made_with(self.encoder, self.settings), self.encoder.dimension)
            self._is_made()  # by another process, perhaps, with another encoder
        described = [StoredDocument(d.id, digests[d.id], d.metadata, ()) for d in same]
        late = self.engine.describe(described) if described else set()
        if late:  # another writer has replaced them since their digests were read
            again = [document for document in same if document.id in late]
            rows += rows_of_documents(again, self.encoder, self.settings, show_progress)
        if rows:
            self.engine.write(rows)


def read_settings(engine: PostgresEngine) -> dict[str, Any] | None:
    """What a collection was made with, its settings as arguments; None if there is none.

    Raises IndexFormatError if that is not an encoder and settings that this version knows.
    """
    try:
        made: dict[str, Any] | None = engine.settings()
        if made is not None:
            check_made(made)
            made["settings"] = usable_settings(DatabaseSettings, made["settings"])
    except (ValueError, TypeError, LookupError, OverflowError, RecursionError) as error:
        raise IndexFormatError(
            f"{engine.location}: its settings cannot be read ({error}); another program has changed or "
            "damaged them: restore the collection from a backup, or build it again"
        ) from error
    return made


def is_database(location: str | Path) -> bool:
    """Whether a location is a URL, and so means a database; any other is the folder of an index."""
    return "://" in (location if isinstance(location, str) else str(as_path("location", location)))
