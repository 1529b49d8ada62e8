"""What all indexes share, and the index in memory: documents and their rows, saved in a folder."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Never, Self

import numpy as np

from precise_rag._processes import ProcessLock
from precise_rag.checks import as_path, check_methods, check_number, check_text, items_of, of_kind, shown
from precise_rag.encoded import encode_queries
from precise_rag.encoders import FrameworkEncoder
from precise_rag.encoders.geometry import with_levels
from precise_rag.errors import EmptyIndexError, IndexFormatError, InputError
from precise_rag.facts import copied, is_same
from precise_rag.filters import Filter, as_filter
from precise_rag.index.folder import locked, read_index, write_index
from precise_rag.index.settings import check_opened, made_with, usable_settings
from precise_rag.index.table import Columns, Part, Shard, changed, merged
from precise_rag.index.view import Hits, View
from precise_rag.protocols import Encoder
from precise_rag.types import Candidate, Document, FloatArray, ScoreScale
from precise_rag.vectors import unit_rows


class Searched(ABC):
    """An index that can be searched, also without blocking an event loop."""

    kind: ClassVar[str]
    """The name under which an index is saved."""
    score_scale: ClassVar[ScoreScale]
    """Scale of the scores of candidates."""
    _settings_type: ClassVar[type]
    search: Callable[..., list[Candidate]]
    __len__: Callable[..., int]

    def __init__(self, encoder: Encoder | None, **settings: Any) -> None:
        if encoder is None:
            raise InputError(f"{type(self).__name__} needs an encoder; pass encoder=load_encoder()")
        methods = ("encode", "encode_queries", "count_tokens")
        check_methods("encoder", encoder, methods, "pass encoder=load_encoder(…)")
        self.encoder = encoder
        try:
            self.settings: Any = self._settings_type(**settings)
        except TypeError as error:
            raise InputError(f"an index of kind {self.kind!r}: {error}") from error

    async def asearch(self, query: str, top_k: int = 10, **options: Any) -> list[Candidate]:
        """Run `search` without blocking the event loop, with the same options.

        The query is encoded by the asynchronous method of a framework's embedding object, if it is one.
        """
        check_search(query, top_k, ())
        encoder = self.encoder if options.get("vector") is None else None
        if isinstance(encoder, FrameworkEncoder) and await asyncio.to_thread(len, self) > 0:
            (options["vector"],) = await encoder.aencode_queries([query])
        return await asyncio.to_thread(self.search, query, top_k, **options)


class DocumentIndex(Searched):
    """A searchable collection of documents, kept in memory and saved in a folder.

    A kind of index says which rows it makes of documents, and how it finds the best ones for a query.
    A change costs what it changes: in memory, in the folder and at the next search. Threads may search while
    another one adds or deletes documents: a search uses the state before or after the change.

    encoder: turns text into vectors.
    settings: fields of the kind's settings class.
    Raises InputError for an encoder or settings that are not valid.
    """

    _search_settings: ClassVar[frozenset[str]]
    """Settings that only searches read; `load` may change them."""

    def __init__(self, encoder: Encoder | None = None, **settings: Any) -> None:
        super().__init__(encoder, **settings)
        self._parts: tuple[Part, ...] = ()  # replaced in one step, so that other threads see a whole state
        self._view: tuple[tuple[Part, ...], View] | None = None
        self._writing, self._preparing = ProcessLock(), ProcessLock()
        self._loaded_from: tuple[Path, set[str]] | None = None

    @abstractmethod
    def _read(self, documents: Sequence[Document], show_progress: bool) -> Iterator[Columns]:
        """Yield the columns of each document, in order.

        They include "spans" (n, 2), "n_tokens" (n,) and "vectors" (n, d).
        """

    def _reads_same(self, known: Document, given: Document) -> bool:
        """Whether `_read` makes the same rows of both documents, even if other metadata differs."""
        return known.text == given.text

    @abstractmethod
    def _prepare(self, shard: Shard) -> Any:
        """Compute the state that all searches of a shard share; called once for a shard that has rows.

        Its attribute "headings", if it has one, knows the titles above a row; see `Headings`.
        """

    @abstractmethod
    def _best(self, view: View, query: str, direction: FloatArray, top_k: int) -> Hits:
        """Return the best `top_k` matching rows for a query whose unit vector is `direction` (d,)."""

    def __getstate__(self) -> dict[str, Any]:
        with self._writing:
            return {**self.__dict__, "_view": None}

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
        encoder, settings: as for the class.
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

    def fields(self) -> set[str]:
        """Return the names of all fields in the metadata of documents."""
        return {name for part in self._parts for document in part.documents for name in document.metadata}

    def document(self, identifier: str) -> Document:
        """Return a document by its id. Raises InputError if it is not in the index."""
        known = self._get(of_kind("identifier", identifier, str))
        if known is None:
            raise InputError(f"the index has no document {shown(identifier)}")
        return replace(known, metadata=copied(known.metadata))

    def add(self, documents: Iterable[Document], *, show_progress: bool = False) -> None:
        """Add documents, or replace those whose ids are in the index.

        A document with the same text as before is not encoded again; only its metadata changes.
        Raises InputError if two of `documents` have the same id, or the encoder's vectors do not fit.
        The index stays as it was if anything is raised.
        """
        given = list(unique_documents(documents))
        with self._writing:
            known = {d.id: known_one for d in given if (known_one := self._get(d.id))}
            same = {d.id for d in given if d.id in known and self._reads_same(known[d.id], d)}
            described = {d.id: d for d in given if d.id in same and not is_same(known[d.id], d)}
            new = [document for document in given if document.id not in same]
            try:
                added = Shard.of(new, list(self._read(new, show_progress)))
                self._check_vectors(added)
            except ValueError as error:
                raise InputError(f"the documents cannot be added: {error}") from error
            self._parts = changed(self._parts, added, known.keys() - same, described)

    def delete(self, ids: Iterable[str]) -> None:
        """Delete documents by id. Raises InputError, and changes nothing, if an id is unknown.

        No search finds them or counts their words from then on. Their texts are removed from memory, and
        by the next `save` from the folder, when their shard is merged; `compact` does that at once.
        """
        with self._writing:
            known = {ids} if isinstance(ids, str) else set(items_of("ids", ids, str))
            if unknown := sorted(i for i in known if self._get(i) is None):
                raise InputError(f"no document {unknown[0]!r} in the index ({len(unknown)} unknown ids)")
            self._parts = changed(self._parts, None, known, {})

    @property
    def has_deleted(self) -> bool:
        """Whether texts of deleted or changed documents are still in its shards, until `compact`."""
        return any(part.alive is not None for part in self._parts)

    def compact(self) -> None:
        """Merge all shards into one, without deleted documents; the next `save` writes everything.

        Searches find the same as before, a little faster if there were many shards.
        """
        with self._writing:
            if len(self._parts) > 1 or self.has_deleted:
                self._parts = (Part(merged(self._parts)),)

    def search(
        self,
        query: str,
        top_k: int = 10,
        *,
        filter: Filter | Mapping[str, Any] | None = None,
        vector: FloatArray | None = None,
        **others: Never,
    ) -> list[Candidate]:
        """Return at most `top_k` candidates, best first.

        query, top_k, filter, vector: as for `HybridIndex.search`.
        Raises EmptyIndexError if the index holds no text.
        """
        check_search(query, top_k, others, "filter", "vector")
        view = self._ready(None if filter is None else as_filter(filter))
        return self._found(view, query, vector, top_k)[1]

    def save(self, path: str | Path) -> None:
        """Save the index into the folder `path`; an index that is there is replaced in one step.

        Shards that the folder has are not written again.
        Raises InputError if the folder holds other files, or a document's metadata is not JSON.
        Raises IndexLockedError if another process is writing the folder.
        Raises IndexChangedError if another index has been saved there since this one was loaded from it.
        Raises IndexWriteError if the disk cannot be written.
        After an error the folder keeps the index it had.
        """
        with locked(path), self._writing:
            self._prepared_view()
            manifest = {"kind": self.kind, **made_with(self.encoder, self.settings)}
            try:
                usable_settings(self._settings_type, manifest["settings"])
            except (TypeError, ValueError) as error:
                raise InputError(f"the index cannot be saved: {error}") from error
            loaded_from, versions = self._loaded_from or (None, None)
            known = versions if Path(path).resolve() == loaded_from else None
            write_index(path, manifest, self._parts, known=known)

    lock = staticmethod(locked)

    @classmethod
    def load(cls, path: str | Path, encoder: Encoder | None = None, **settings: Any) -> Self:
        """Load a saved index; its vectors are memory-mapped. Each file is read once to compare checksums.

        encoder: the encoder that the index was built with.
        settings: new values for settings that only searches read; of the others, only the value that was
            saved, for instance the segmenter.
        Raises IndexFormatError if the index is damaged or its kind, version or encoder differs, and
        InputError for any other setting.
        """
        path = as_path("path", path)
        manifest, parts = read_index(path)
        if manifest["kind"] != cls.kind:
            raise IndexFormatError(
                f"{path} holds a {manifest['kind']!r} index, not {cls.kind!r}; open it with load_index(path)"
            )
        check_opened(path, manifest, encoder, settings, cls._search_settings)
        try:
            saved = usable_settings(cls._settings_type, manifest["settings"])
        except (TypeError, ValueError) as error:
            raise IndexFormatError(f"{path} is damaged ({error}); delete it and build it again") from error
        index = cls(encoder, **{**saved, **settings})
        index._parts = tuple(parts)
        index._loaded_from = path.resolve(), {manifest["sha256"]}
        return index

    def _get(self, identifier: str) -> Document | None:
        return next(filter(None, (part.get(identifier) for part in self._parts)), None)

    def _check_vectors(self, added: Shard) -> None:
        """Raise ValueError unless the vectors of new rows are as long as those of the others."""
        with_rows = (shard.columns for shard in (added, *(part.shard for part in self._parts)) if len(shard))
        widths = {columns["vectors"].shape[1] for columns in with_rows}
        if len(widths) > 1:
            raise ValueError(f"vectors of {' and '.join(map(str, sorted(widths)))} numbers; use one encoder")

    def _prepared_view(self) -> View:
        """The present state with all shards prepared for searches."""
        with self._preparing:
            parts = self._parts
            if self._view is None or self._view[0] is not parts:
                view = View.of(parts)
                for part in view.parts:
                    if part.shard.prepared is None:
                        part.shard.prepared = self._prepare(part.shard)
                self._view = parts, view
            return self._view[1]

    def _found(
        self, view: View, query: str, vector: FloatArray | None, top_k: int, **options: Any
    ) -> tuple[list[int], list[Candidate]]:
        """The best rows for a query, and their candidates.

        vector: (d,) the user's, of any length; None to encode the query. options: of `_best`.
        """
        if not view.n_rows or (view.matching is not None and not view.matching.any()):
            return [], []
        if vector is None:
            vector = encode_queries(self.encoder, [query])[0]
        direction = query_direction(vector, int(view.parts[0].shard.columns["vectors"].shape[1]))
        hits = self._best(view, query, direction, top_k, **options)
        parts = with_levels(self.encoder, hits.parts, direction)
        return hits.rows.tolist(), view.candidates(hits._replace(parts=parts), self.score_scale)

    def _ready(self, wanted: Filter | None = None) -> View:
        """The present state, for a search of the documents that match a filter."""
        view = self._prepared_view()
        if not len(self):
            raise EmptyIndexError(
                f"the index holds {len(self.document_ids)} documents and no text; add documents first"
            )
        return view if wanted is None else view.within(wanted)


def unique_documents(documents: Iterable[Document]) -> Iterator[Document]:
    """Yield documents with copies of their metadata.

    Raises InputError for an object of another type, and for a document that has the id of an earlier one.
    """
    seen = set()
    for document in items_of("documents", documents, Document):
        if document.id in seen:
            raise InputError(f"two documents have the id {document.id!r}; give each its own id")
        seen.add(document.id)
        yield replace(document, metadata=copied(document.metadata))


def check_search(query: str, top_k: int, others: Iterable[str], *known: str) -> None:
    """Raise InputError unless the query is text, `top_k` at least 1, and the other options are known ones."""
    check_text("the query", query)
    check_number("top_k", top_k, least=1, whole=True)
    for name in others:
        raise InputError(f"a search of this index has no option {name!r}; it has {', '.join(known)}")


def query_direction(vector: Any, dimension: int) -> FloatArray:
    """(d,) float32 query vector of unit length. Raises InputError if its length is not `dimension`."""
    try:
        row = np.asarray(vector, dtype=np.float32)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"the query's vector must be numbers: {error}") from error
    if row.shape != (dimension,) or not np.isfinite(row).all():
        raise InputError(
            f"the query's vector must be finite numbers of shape {(dimension,)} as those indexed, "
            f"got {row.shape}"
        )
    return unit_rows(row[None]).ravel()
