"""The base class of all indexes: adds, deletes, searches and saves documents."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import fields
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from precise_rag._pickling import Portable, check_picklable
from precise_rag._processes import ProcessLock
from precise_rag.checks import as_path, check_methods, check_text, items_of, shown
from precise_rag.encoders import FrameworkEncoder
from precise_rag.errors import EmptyIndexError, IndexFormatError, InputError
from precise_rag.filters import Filter, as_filter
from precise_rag.index.arrays.collection import Collection, Columns
from precise_rag.index.arrays.words import Vocabulary
from precise_rag.index.queries import check_search, query_direction
from precise_rag.index.segments import Part, Segment, changed, merged
from precise_rag.index.snapshot import Hits, Snapshot
from precise_rag.index.storage.files import Verify
from precise_rag.index.storage.folder import locked, write_index
from precise_rag.index.storage.layout import check_collection, check_finite, check_index, check_settings
from precise_rag.index.storage.lock import WAIT
from precise_rag.index.storage.manifest import read_manifest, version_of
from precise_rag.index.storage.reading import read_index
from precise_rag.index.storage.trust import without_models
from precise_rag.protocols import Encoder
from precise_rag.sentences.tables import build_tables
from precise_rag.types import Candidate, Document, FloatArray, ScoreScale, SentenceTable, check_query


class DocumentIndex(Portable, ABC):
    """A searchable collection of documents.

    Documents are kept in segments, see `precise_rag.index.segments`: a change costs what it changes, in
    memory, in the folder and at the next search.

    Subclasses define how a document becomes rows (`_read`), what to compute once from the rows of a
    segment (`_prepare`) and how rows are scored (`_hits`).

    Threads may search while another one adds or deletes documents: a search uses the state before or
    after the change.
    """

    kind: ClassVar[str]
    settings_type: ClassVar[type]
    score_scale: ClassVar[ScoreScale]
    needs_encoder: ClassVar[bool] = True
    search_settings: ClassVar[frozenset[str]] = frozenset()
    """Settings that only affect searches; `load` may change them."""

    def __init__(self, encoder: Encoder | None, **settings: Any) -> None:
        if encoder is None and self.needs_encoder:
            raise InputError(f"{type(self).__name__} needs an encoder; pass encoder=load_encoder()")
        if encoder is not None:
            methods = ("encode", "encode_queries", "count_tokens")
            check_methods("encoder", encoder, methods, "pass encoder=load_encoder(…)")
        self.encoder = encoder
        try:
            self.settings: Any = self.settings_type(**settings)
        except TypeError as error:
            raise InputError(f"{type(self).__name__}: {error}") from error
        self._stop_words: frozenset[str] = frozenset()
        self._parts: tuple[Part, ...] = ()
        self._present: tuple[tuple[Part, ...], Snapshot] | None = None
        self._loaded_from: tuple[Path, set[str]] | None = None
        self._writing, self._preparing = ProcessLock(), ProcessLock()

    def __getstate__(self) -> dict[str, Any]:
        parts = {"encoder": self.encoder, "settings": self.settings}
        check_picklable(self, parts, "save it, and load it in the worker: load_index(path, encoder)")
        with self._writing:
            return {**self.__dict__, "_present": None}

    @classmethod
    def build(
        cls,
        documents: Iterable[Document],
        encoder: Encoder | None = None,
        *,
        show_progress: bool = False,
        **settings: Any,
    ) -> Self:
        """Build an index.

        documents: the documents; ids must be unique.
        encoder: turns text into vectors; optional only for BM25Index.
        show_progress: show a progress bar.
        settings: fields of the index's settings class.
        Raises InputError for duplicate ids and invalid settings.
        """
        index = cls(encoder, **settings)
        index.add(documents, show_progress=show_progress)
        return index

    def __len__(self) -> int:
        return sum(len(part) for part in self._parts)

    @property
    def document_ids(self) -> tuple[str, ...]:
        """Ids of all documents, including those without text."""
        return tuple(document.id for part in self._parts for document in part.documents)

    def document(self, identifier: str) -> Document:
        """Return a document by its id. Raises InputError if it is not in the index."""
        found = _document(self._parts, identifier)
        if found is None:
            raise InputError(f"the index has no document {shown(identifier)}")
        return found

    @property
    def empty_document_ids(self) -> tuple[str, ...]:
        """Ids of the documents without text; searches cannot find them."""
        return tuple(
            document.id
            for part in self._parts
            for document, size in zip(
                part.segment.documents, np.diff(part.segment.collection.offsets).tolist(), strict=True
            )
            if size == 0 and part.get(document.id)
        )

    def add(self, documents: Iterable[Document], *, show_progress: bool = False) -> None:
        """Add documents, or replace those whose ids are in the index.

        A document with the same text as before is not encoded again; only its metadata changes.
        Raises InputError if two of `documents` have the same id, or the encoder's vectors do not fit.
        The index stays as it was if anything is raised.
        """
        given = unique_documents(documents)
        with self._writing:
            known = {d.id: found for d in given if (found := _document(self._parts, d.id))}
            same = {d.id for d in given if d.id in known and self._reads_same(known[d.id], d)}
            new = [d for d in given if d.id not in same]
            redescribed = {d.id: d for d in given if d.id in same and known[d.id] != d}
            words = Vocabulary(self._stop_words)
            blocks = list(self._read(new, words, show_progress))
            try:
                added = Collection.of(new, blocks)
                check_collection(added)
                check_finite(added.columns)
                self._parts = changed(self._parts, Segment(added, words), known.keys() - same, redescribed)
            except ValueError as error:
                raise InputError(f"the documents cannot be added: {error}") from error

    def delete(self, ids: Iterable[str]) -> None:
        """Delete documents by id. Raises InputError, and changes nothing, if an id is unknown.

        No search finds them or counts their words from then on. Their texts are removed from memory, and
        by the next `save` from the folder, when their segment is merged; `compact` does that at once.
        """
        with self._writing:
            known = {ids} if isinstance(ids, str) else set(items_of("ids", ids, str))
            if unknown := sorted(i for i in known if _document(self._parts, i) is None):
                raise InputError(f"no document {unknown[0]!r} in the index ({len(unknown)} unknown ids)")
            self._parts = changed(self._parts, None, known, {})

    def compact(self) -> None:
        """Merge all segments into one, without what is deleted; the next `save` writes everything.

        Searches find the same as before, a little faster if there were many segments.
        """
        with self._writing:
            if len(self._parts) > 1 or any(part.alive is not None for part in self._parts):
                self._parts = (Part(merged(self._parts)),)

    def search(
        self,
        query: str,
        top_k: int = 10,
        *,
        filter: Filter | Mapping[str, Any] | None = None,
        vector: FloatArray | None = None,
    ) -> list[Candidate]:
        """Return at most `top_k` candidates, best first.

        query: the query as text.
        top_k: maximum number of candidates; at least 1.
        filter: what the documents of all candidates must meet, see `as_filter`; default: nothing.
        vector: (d,) the query's vector; default: `query` is encoded.
        Raises EmptyIndexError if the index holds no text.
        """
        snapshot = self._ready(top_k, query, filter)
        if snapshot.matches_nothing:
            return []
        hits = self._hits(snapshot, query, top_k, vector).within(snapshot.matching)
        return snapshot.candidates(hits, self.score_scale)

    async def asearch(self, query: str, top_k: int = 10, **options: Any) -> list[Candidate]:
        """Run `search` without blocking the event loop, with the same options.

        The query is encoded by the asynchronous method of a framework's embedding object, if it is one.
        """
        if isinstance(self.encoder, FrameworkEncoder) and options.get("vector") is None:
            (options["vector"],) = await self.encoder.aencode_queries([check_query(query)])
        return await asyncio.to_thread(self.search, query, top_k, **options)

    def save(self, path: str | Path) -> None:
        """Save the index into the folder `path`; an index that is there is replaced in one step.

        Segments that the folder has are not written again.
        Raises InputError if the folder holds other files, or a document's metadata is not JSON;
        IndexLockedError if another process is writing the folder; IndexChangedError if this index was
        loaded from the folder and another one has been saved there since; IndexWriteError if the disk
        cannot be written. The folder then keeps the index it had.
        """
        with locked(path), self._writing:
            self._prepared_snapshot()
            manifest = self._manifest()
            loaded_from, versions = self._loaded_from or (None, None)
            known = versions if Path(path).resolve() == loaded_from else None
            parts = [(part, self._extras(part.segment)) for part in self._parts]
            try:
                for part, extras in parts:
                    if not part.segment.is_stored(path):  # others were checked when saved or loaded
                        self._check(manifest, part.segment, extras)
            except ValueError as error:
                raise InputError(f"the index cannot be saved: {error}") from error
            write_index(path, manifest, parts, known=known)

    @staticmethod
    def lock(path: str | Path, timeout: float = WAIT) -> AbstractContextManager[None]:
        """Lock the folder `path` against other writers, to load, change and save its index.

        with HybridIndex.lock(path):
            index = load_index(path)
            index.add(documents)
            index.save(path)

        path: folder of the index; made if it does not exist.
        timeout: seconds to wait for another writer.
        Raises IndexLockedError, naming the process that writes, when the time is over.
        """
        return locked(path, timeout)

    @classmethod
    def load(
        cls, path: str | Path, encoder: Encoder | None = None, *, verify: Verify = "full", **settings: Any
    ) -> Self:
        """Load a saved index; its vectors are memory-mapped.

        path: folder of the index.
        encoder: the encoder that the index was built with.
        verify: "full" (the default) reads every file once and compares checksums, which takes time in
            proportion to the size on disk; "shape" compares sizes, shapes and types, for large
            indexes on a disk that you trust.
        settings: new values for settings that only affect searches (`search_settings`); other
            settings only with the value that was saved, for instance the segmenter.
        Raises IndexFormatError if the index is damaged or its kind, version or encoder differs, and
        InputError for any other setting.
        """
        path = as_path("path", path)
        saved = read_manifest(path)["settings"]
        changed = {name for name, value in settings.items() if saved.get(name) != as_json(value)}
        if fixed := sorted(changed - cls.search_settings):
            raise InputError(
                f"{fixed[0]} cannot change in a saved {cls.__name__} (settings that can: "
                f"{', '.join(sorted(cls.search_settings)) or 'none'}); build the index again"
            )
        manifest, parts = read_index(path, verify)
        if manifest["kind"] != cls.kind:
            raise IndexFormatError(
                f"{path} holds a {manifest['kind']!r} index, not {cls.kind!r}; open it with load_index(path)"
            )
        if encoder is not None:
            check_text("the name of the encoder", getattr(encoder, "name", None))
        built_with, given = manifest["encoder"]["name"], encoder.name if encoder else None
        if built_with != given:
            raise IndexFormatError(
                f"{path} was built with encoder {built_with!r} but {given!r} was given; "
                f"load it with load_encoder({built_with!r}) or build it again"
            )
        try:
            for part in parts:
                cls._check(manifest, part.segment, part.segment.extras)
        except (TypeError, ValueError) as error:
            raise IndexFormatError(f"{path} is damaged ({error}); build the index again") from error
        index = cls(encoder, **{**without_models(manifest["settings"]), **settings})
        for part in parts:
            part.segment.words = Vocabulary(index._stop_words, part.segment.words.words())
        index._parts = tuple(parts)
        index._loaded_from = Path(path).resolve(), {version_of(manifest)}
        return index

    @classmethod
    def _check(cls, manifest: Mapping[str, Any], segment: Segment, extras: Columns) -> None:
        """Raise ValueError if what is saved cannot be loaded and searched."""
        check_settings(cls.kind, cls.settings_type, manifest["settings"])
        settings = cls.settings_type(**without_models(manifest["settings"]))
        check_index(cls.kind, settings, len(segment.words), segment.collection, extras)

    def _reads_same(self, known: Document, given: Document) -> bool:
        """Whether `_read` finds the same in both documents, whatever else their metadata say."""
        return known.text == given.text

    @abstractmethod
    def _read(
        self, documents: Sequence[Document], words: Vocabulary, show_progress: bool
    ) -> Iterator[Columns]:
        """Yield the columns of each document, in order; they include "spans" (n, 2) and "n_tokens" (n,).

        words: numbers the words of columns that hold any; empty at first.
        """

    @abstractmethod
    def _prepare(self, segment: Segment) -> Any:
        """Compute what all searches of a segment share; called once for each segment that has rows."""

    @abstractmethod
    def _hits(self, snapshot: Snapshot, query: str, top_k: int, vector: FloatArray | None) -> Hits:
        """Find the best rows for a query, among those that match; see `Snapshot.matching`."""

    def _tables(
        self, documents: Sequence[Document], show_progress: bool, *, vectors: bool = True
    ) -> Iterator[tuple[Document, SentenceTable]]:
        """Yield each document with its sentences; a document without text has an empty table."""
        with_text = [document for document in documents if document.text.strip()]
        tables = build_tables(with_text, self.encoder, show_progress=show_progress, vectors=vectors)
        for document in documents:
            yield document, next(tables) if document.text.strip() else self._empty_table(document)

    def _empty_table(self, document: Document) -> SentenceTable:
        none = np.zeros(0, dtype=np.int64)
        vectors = np.zeros((0, self.encoder.dimension), dtype=np.float32) if self.encoder else None
        return SentenceTable(document.id, none.reshape(0, 2), none, none, vectors)

    def _manifest(self) -> dict[str, Any]:
        encoder = self.encoder
        source = getattr(encoder, "source", None) or (encoder.name if encoder else None)
        return {
            "kind": self.kind,
            "encoder": {"name": encoder.name if encoder else None, "source": source},
            "settings": {f.name: as_json(getattr(self.settings, f.name)) for f in fields(self.settings)},
        }

    def _extras(self, segment: Segment) -> Columns:
        """Arrays to save with a prepared segment that are not columns of its rows."""
        return segment.extras

    def _ready(
        self, top_k: int, query: str = "", filter: Filter | Mapping[str, Any] | None = None
    ) -> Snapshot:
        """The present state, for a search. Raises InputError if an argument is not valid."""
        check_search(query, top_k)
        wanted = None if filter is None else as_filter(filter)
        snapshot = self._prepared_snapshot()
        if not len(self):
            raise EmptyIndexError(
                f"the index holds {len(self.document_ids)} documents and no text; add documents first"
            )
        if wanted is None:
            return snapshot
        if getattr(self.settings, "filter_statistics", "shared") == "shared":
            return snapshot.within(wanted)
        with self._preparing:
            return snapshot.holding_only(wanted, self._prepare)

    def _prepared_snapshot(self) -> Snapshot:
        """The present state, with all segments prepared; without rows for an index without text."""
        with self._preparing:
            parts = self._parts
            if self._present is None or self._present[0] is not parts:
                snapshot = Snapshot.of(parts)
                for part in snapshot.parts:
                    if part.segment.prepared is None:
                        part.segment.prepared = self._prepare(part.segment)
                self._present = parts, snapshot
            return self._present[1]

    def _query_vector(self, query: str, vector: FloatArray | None) -> FloatArray:
        """(d,) float32 vector of unit length."""
        if vector is None:
            assert self.encoder is not None
            vector = self.encoder.encode_queries([query])[0]
        return query_direction(vector, self._dimension())

    def _dimension(self) -> int:
        """Length of the vectors."""
        return int(self._parts[0].segment.collection.columns["vectors"].shape[1])


def _document(parts: Iterable[Part], identifier: str) -> Document | None:
    return next((found for part in parts if (found := part.get(identifier)) is not None), None)


def as_json(value: object) -> object:
    """A setting as JSON; a segmenter object is recorded by its name."""
    plain = value is None or isinstance(value, str | int | float | tuple | list | dict)
    return value if plain else getattr(value, "name", str(value))


def unique_documents(documents: Iterable[Document]) -> list[Document]:
    """The documents as a list. Raises InputError if one is not a Document, or two have the same id."""
    given: dict[str, Document] = {}
    for document in items_of("documents", documents, Document):
        if document.id in given:
            raise InputError(f"two documents have the id {document.id!r}; give each its own id")
        given[document.id] = document
    return list(given.values())
