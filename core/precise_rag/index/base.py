"""What every index shares: document ids, growing and shrinking, saving, and making candidates."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from precise_rag.errors import EmptyIndexError, IndexFormatError, InputError
from precise_rag.index.arrays.collection import Collection, Columns
from precise_rag.index.storage import read_index, write_index
from precise_rag.protocols import Encoder
from precise_rag.sentences.tables import build_tables
from precise_rag.types import Candidate, Document, FloatArray, IntArray, ScoreScale, SentenceTable, Span
from precise_rag.vectors import unit_rows


class Hits(NamedTuple):
    """Rows of a collection with their scores, best first, and the raw scores of each part."""

    rows: IntArray
    scores: FloatArray
    parts: Mapping[str, FloatArray] = {}

    @classmethod
    def of(cls, rows: IntArray, scores: FloatArray, parts: Mapping[str, FloatArray]) -> "Hits":
        """These rows of arrays that hold the scores of all rows; those ruled out by -inf are left out."""
        rows = rows[np.isfinite(scores[rows])]
        return cls(rows, scores[rows], {name: values[rows] for name, values in parts.items()})


class Snapshot(NamedTuple):
    """A collection and what was computed from it: one consistent state for a search."""

    collection: Collection
    documents: tuple[Document, ...]
    prepared: Any


class DocumentIndex(ABC):
    """A searchable collection of documents.

    A subclass says how a document becomes rows (`_read`), what to compute once from all rows
    (`_prepare`) and how rows score (`_hits`). Searches may run in many threads, also while
    another thread adds or deletes: each sees the state before or after, never between.
    """

    kind: ClassVar[str]
    settings_type: ClassVar[type]
    score_scale: ClassVar[ScoreScale]
    needs_encoder: ClassVar[bool] = True
    search_settings: ClassVar[frozenset[str]] = frozenset()
    """Settings that only searching reads, so that a loaded index may have others."""

    def __init__(self, encoder: Encoder | None, **settings: Any) -> None:
        if encoder is None and self.needs_encoder:
            raise InputError(f"{type(self).__name__} needs an encoder; pass load_encoder()")
        self.encoder = encoder
        try:
            self.settings: Any = self.settings_type(**settings)
        except TypeError as error:
            raise InputError(f"{type(self).__name__}: {error}") from error
        self._snapshot: Snapshot | None = None
        self._collection = Collection()
        self._loaded: tuple[Collection | None, Columns] = (None, {})
        self._writing = threading.Lock()
        self._preparing = threading.Lock()

    @classmethod
    def build(
        cls,
        documents: Iterable[Document],
        encoder: Encoder | None = None,
        *,
        show_progress: bool = False,
        **settings: Any,
    ) -> Self:
        """An index of `documents`. Raises InputError if two of them have the same id."""
        index = cls(encoder, **settings)
        index.add(documents, show_progress=show_progress)
        return index

    def __len__(self) -> int:
        return len(self._collection)

    @property
    def document_ids(self) -> tuple[str, ...]:
        """The ids of all documents, also of those without text."""
        return tuple(self._collection.documents)

    @property
    def empty_document_ids(self) -> tuple[str, ...]:
        """The ids of documents that no search can find, because they hold no text."""
        sizes = np.diff(self._collection.offsets)
        return tuple(i for i, size in zip(self._collection.documents, sizes, strict=True) if size == 0)

    def add(self, documents: Iterable[Document], *, show_progress: bool = False) -> None:
        """Add documents; one whose id is known replaces the old one, and costs nothing if its text
        is the same. Raises InputError, changing nothing, if an id is given twice."""
        given = _unique(documents)
        with self._writing:
            known = self._collection.documents
            same = {d.id for d in given if d.id in known and known[d.id].text == d.text}
            new = [d for d in given if d.id not in same]
            blocks = list(self._read(new, show_progress))
            kept = self._collection.without(d.id for d in new if d.id in known)
            redescribed = [d for d in given if d.id in same and known[d.id] != d]
            self._collection = kept.described(redescribed).extended(new, blocks)

    def delete(self, ids: Iterable[str]) -> None:
        """Remove documents by id. Raises InputError, changing nothing, if an id is unknown."""
        with self._writing:
            self._collection = self._collection.without([ids] if isinstance(ids, str) else ids)

    def search(self, query: str, top_k: int = 10, *, vector: FloatArray | None = None) -> list[Candidate]:
        """At most `top_k` candidates, best first.

        vector: (d,) the query's own vector, where the caller has it already.
        Raises EmptyIndexError if nothing is indexed.
        """
        snapshot = self._ready(top_k)
        return self._candidates(snapshot, self._hits(snapshot, query, top_k, vector))

    def save(self, path: str | Path) -> None:
        """Write the index into the folder `path`, replacing the one there in one step."""
        with self._writing:
            write_index(path, self._manifest(), self._collection, self._extras())

    @classmethod
    def load(cls, path: str | Path, encoder: Encoder | None = None, **settings: Any) -> Self:
        """The index saved at `path`, its vectors memory-mapped.

        settings: others than those saved, of those that only searching reads (`search_settings`).
        Raises IndexFormatError if it is of another kind, version or encoder, and InputError for a
        setting that the rows were made with.
        """
        if made_with := sorted(settings.keys() - cls.search_settings):
            raise InputError(
                f"{made_with[0]} cannot change in a saved {cls.__name__}, only "
                f"{', '.join(sorted(cls.search_settings)) or 'nothing'}; build the index again"
            )
        manifest, collection, extras = read_index(path)
        if manifest["kind"] != cls.kind:
            raise IndexFormatError(
                f"{path} holds a {manifest['kind']!r} index, not {cls.kind!r}; open it with load_index(path)"
            )
        built_with, given = manifest["encoder"]["name"], encoder.name if encoder else None
        if built_with != given:
            raise IndexFormatError(
                f"{path} was built with encoder {built_with!r} but {given!r} was given; "
                f"load it with load_encoder({built_with!r}) or build it again"
            )
        index = cls(encoder, **{**manifest["settings"], **settings})
        index._collection = collection
        index._loaded = collection, extras
        index._restore(manifest, extras)
        return index

    @abstractmethod
    def _read(self, documents: Sequence[Document], show_progress: bool) -> Iterator[Columns]:
        """The columns of each document, in order; "spans" (n, 2) and "n_tokens" (n,) among them."""

    @abstractmethod
    def _prepare(self, collection: Collection) -> Any:
        """What all searches of this collection share; computed once after each change."""

    @abstractmethod
    def _hits(self, snapshot: Snapshot, query: str, top_k: int, vector: FloatArray | None) -> Hits:
        """The best rows for a query."""

    def _tables(
        self, documents: Sequence[Document], show_progress: bool, *, vectors: bool = True
    ) -> Iterator[tuple[Document, SentenceTable]]:
        """Each document with its sentences; one without text has a table without rows."""
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
            "settings": {f.name: _as_json(getattr(self.settings, f.name)) for f in fields(self.settings)},
        }

    def _extras(self) -> Columns:
        """Arrays to save that do not go by rows."""
        return {}

    def _restore(self, manifest: Mapping[str, Any], extras: Columns) -> None:
        """Take back what a subclass put into the manifest and the extra arrays."""
        return

    def _saved(self, collection: Collection, part: str) -> Columns:
        """What `_extras` called "<part>.<name>", by name; nothing unless `collection` is as it was loaded."""
        loaded, extras = self._loaded
        if collection is not loaded:
            return {}
        prefix = f"{part}."
        return {name.removeprefix(prefix): extras[name] for name in extras if name.startswith(prefix)}

    def _ready(self, top_k: int) -> Snapshot:
        if top_k < 1:
            raise InputError(f"top_k must be at least 1, got {top_k}")
        with self._preparing:
            collection = self._collection
            if not len(collection):
                raise EmptyIndexError(
                    f"the index holds {len(collection.documents)} documents and no text; add documents first"
                )
            if self._snapshot is None or self._snapshot.collection is not collection:
                documents = tuple(collection.documents.values())
                self._snapshot = Snapshot(collection, documents, self._prepare(collection))
            return self._snapshot

    def _query_vector(self, query: str, vector: FloatArray | None) -> FloatArray:
        """(d,) float32 of unit length."""
        if vector is None:
            assert self.encoder is not None
            vector = self.encoder.encode_queries([query])[0]
        return unit_rows(np.asarray(vector, dtype=np.float32)[None])[0]

    def _candidates(self, snapshot: Snapshot, hits: Hits) -> list[Candidate]:
        collection = snapshot.collection
        spans, n_tokens = collection.columns["spans"], collection.columns["n_tokens"]
        passages = collection.columns.get("passage_spans")
        found = []
        for place, (row, owner) in enumerate(zip(hits.rows, collection.owners(hits.rows), strict=True)):
            document = snapshot.documents[owner]
            start, end = map(int, spans[row])
            found.append(
                Candidate(
                    doc_id=document.id,
                    start=start,
                    end=end,
                    text=document.text[start:end],
                    score=float(hits.scores[place]),
                    score_scale=self.score_scale,
                    n_tokens=int(n_tokens[row]),
                    passage=None if passages is None else Span(*map(int, passages[row])),
                    scores={name: float(values[place]) for name, values in hits.parts.items()},
                    metadata=document.metadata,
                )
            )
        return found


def _as_json(value: object) -> object:
    """A setting as JSON: a segmenter or tokenizer of the caller's is kept by its name."""
    plain = value is None or isinstance(value, str | int | float | tuple | list | dict)
    return value if plain else getattr(value, "name", str(value))


def _unique(documents: Iterable[Document]) -> list[Document]:
    given: dict[str, Document] = {}
    for document in documents:
        if document.id in given:
            raise InputError(f"two documents have the id {document.id!r}; ids must be unique")
        given[document.id] = document
    return list(given.values())
