"""The documents of an index: adds, replaces and deletes them, in segments."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any, ClassVar, Self

import numpy as np

from precise_rag._pickling import Portable, check_picklable
from precise_rag._processes import ProcessLock
from precise_rag.checks import check_methods, items_of, shown
from precise_rag.errors import InputError
from precise_rag.index.arrays.collection import Collection, Columns
from precise_rag.index.arrays.words import Vocabulary
from precise_rag.index.segments import Part, Segment, changed, merged
from precise_rag.index.storage.layout import check_collection, check_finite
from precise_rag.protocols import Encoder
from precise_rag.sentences.tables import build_tables
from precise_rag.types import Document, SentenceTable


class DocumentCollection(Portable, ABC):
    """Documents with their rows, in segments; see `precise_rag.index.segments`.

    A change costs what it changes, in memory and at the next search. Subclasses define how a document becomes
    rows (`_read`).
    """

    settings_type: ClassVar[type]
    needs_encoder: ClassVar[bool] = True

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
        self._writing = ProcessLock()

    def __getstate__(self) -> dict[str, Any]:
        parts = {"encoder": self.encoder, "settings": self.settings}
        check_picklable(self, parts, "save it, and load it in the worker: load_index(path, encoder)")
        with self._writing:
            return dict(self.__dict__)

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

    def some_metadata(self, most: int = 1_000) -> list[Mapping[str, Any]]:
        """Return the metadata of at most `most` documents, whichever."""
        documents = chain.from_iterable(part.documents for part in self._parts)
        return [document.metadata for document in islice(documents, most)]

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
                self._check_width(added)
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

    def _check_width(self, added: Collection) -> None:
        """Raise ValueError unless the vectors of new rows are as long as those of the others."""
        everything = (added, *(part.segment.collection for part in self._parts))
        with_vectors = (rows.columns for rows in everything if len(rows) and "vectors" in rows.columns)
        widths = {columns["vectors"].shape[1] for columns in with_vectors}
        if len(widths) > 1:
            raise ValueError(f"vectors of {' and '.join(map(str, sorted(widths)))} numbers; use one encoder")

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


def _document(parts: Iterable[Part], identifier: str) -> Document | None:
    return next((found for part in parts if (found := part.get(identifier)) is not None), None)


def unique_documents(documents: Iterable[Document]) -> list[Document]:
    """The documents as a list. Raises InputError if one is not a Document, or two have the same id."""
    given: dict[str, Document] = {}
    for document in items_of("documents", documents, Document):
        if document.id in given:
            raise InputError(f"two documents have the id {document.id!r}; give each its own id")
        given[document.id] = document
    return list(given.values())
