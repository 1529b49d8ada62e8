"""The index that users have: documents and their rows, searched by a scheme, saved in a folder."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import fields
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from typing_extensions import override

from precise_rag._processes import ProcessLock
from precise_rag.checks import as_path, check_text, items_of, shown
from precise_rag.errors import EmptyIndexError, IndexFormatError, InputError
from precise_rag.filters import Filter, as_filter
from precise_rag.index.folder import WAIT, Verify, locked, read_index, version_of, write_index
from precise_rag.index.scheme import Scheme, SentenceScheme, tokens_of_passage
from precise_rag.index.search import (
    Returns,
    Searched,
    SentenceQuery,
    SentenceSearch,
    check_search,
    merge_neighbours,
    unique_documents,
    widen_to_passages,
)
from precise_rag.index.settings import as_json, usable_settings
from precise_rag.index.table import Block, Part, changed, merged
from precise_rag.index.view import View
from precise_rag.protocols import Encoder
from precise_rag.types import Candidate, Document, FloatArray, ScoreScale, Stretch


class DocumentIndex(Searched):
    """A searchable collection of documents, kept in memory and saved in a folder.

    It is put together from a scheme, which makes rows of documents and scores them (`scheme_type`), and from
    the documents with their rows. A change costs what it changes: in memory, in the folder and at the next
    search. Threads may search while another one adds or deletes documents: a search uses the state before
    or after the change.

    encoder: turns text into vectors.
    settings: fields of the kind's settings class.
    scheme: (attribute) the scheme.
    """

    scheme_type: ClassVar[type[Scheme]]

    def __init__(self, encoder: Encoder | None = None, **settings: Any) -> None:
        if encoder is None:
            raise InputError(f"{type(self).__name__} needs an encoder; pass encoder=load_encoder()")
        self.scheme: Any = self.scheme_type(encoder, **settings)
        self._parts: tuple[Part, ...] = ()  # replaced in one step, so that other threads see a whole state
        self._view: tuple[tuple[Part, ...], View] | None = None
        self._writing, self._preparing = ProcessLock(), ProcessLock()
        self._loaded_from: tuple[Path, set[str]] | None = None

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
        encoder: turns text into vectors.
        show_progress: show a progress bar.
        settings: fields of the kind's settings class.
        Raises InputError for duplicate ids and invalid settings.
        """
        index = cls(encoder, **settings)
        index.add(documents, show_progress=show_progress)
        return index

    @property
    def encoder(self) -> Encoder:
        """Turns text into vectors."""
        encoder: Encoder = self.scheme.encoder
        return encoder

    @property
    def settings(self) -> Any:
        """The settings of the index."""
        return self.scheme.settings

    @property
    def score_scale(self) -> ScoreScale:
        """Scale of the scores of candidates."""
        return self.scheme_type.score_scale

    def __len__(self) -> int:
        return sum(len(part) for part in self._parts)

    @property
    def document_ids(self) -> tuple[str, ...]:
        """Ids of all documents, including those without text."""
        return tuple(document.id for part in self._parts for document in part.documents)

    @property
    def empty_document_ids(self) -> tuple[str, ...]:
        """Ids of the documents without text; searches cannot find them."""
        return tuple(
            document.id
            for part in self._parts
            for document, size in zip(part.block.documents, np.diff(part.block.offsets), strict=True)
            if size == 0 and part.get(document.id)
        )

    def document(self, identifier: str) -> Document:
        """Return a document by its id. Raises InputError if it is not in the index."""
        known = self._get(identifier)
        if known is None:
            raise InputError(f"the index has no document {shown(identifier)}")
        return known

    def add(self, documents: Iterable[Document], *, show_progress: bool = False) -> None:
        """Add documents, or replace those whose ids are in the index.

        A document with the same text as before is not encoded again; only its metadata changes.
        Raises InputError if two of `documents` have the same id, or the encoder's vectors do not fit.
        The index stays as it was if anything is raised.
        """
        given = unique_documents(documents)
        with self._writing:
            known = {d.id: known_one for d in given if (known_one := self._get(d.id))}
            same = {d.id for d in given if d.id in known and self.scheme.reads_same(known[d.id], d)}
            described = {d.id: d for d in given if d.id in same and known[d.id] != d}
            new = [document for document in given if document.id not in same]
            try:
                added = Block.of(new, list(self.scheme.read(new, show_progress)))
                self._check_vectors(added)
            except ValueError as error:
                raise InputError(f"the documents cannot be added: {error}") from error
            self._parts = changed(self._parts, added, known.keys() - same, described)

    def delete(self, ids: Iterable[str]) -> None:
        """Delete documents by id. Raises InputError, and changes nothing, if an id is unknown.

        No search finds them or counts their words from then on. Their texts are removed from memory, and
        by the next `save` from the folder, when their block is merged; `compact` does that at once.
        """
        with self._writing:
            known = {ids} if isinstance(ids, str) else set(items_of("ids", ids, str))
            if unknown := sorted(i for i in known if self._get(i) is None):
                raise InputError(f"no document {unknown[0]!r} in the index ({len(unknown)} unknown ids)")
            self._parts = changed(self._parts, None, known, {})

    def compact(self) -> None:
        """Merge all blocks into one, without deleted documents; the next `save` writes everything.

        Searches find the same as before, a little faster if there were many blocks.
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
        vector: (d,) the query's vector, by the same model as those of the index; default: `query` is encoded.
        Raises EmptyIndexError if the index holds no text.
        """
        check_search(query, top_k)
        view = self._ready(None if filter is None else as_filter(filter))
        if view.matches_nothing:
            return []
        return view.candidates(self.scheme.find(view, query, vector, top_k), self.score_scale)

    def save(self, path: str | Path) -> None:
        """Save the index into the folder `path`; an index that is there is replaced in one step.

        Blocks that the folder has are not written again.
        Raises InputError if the folder holds other files, or a document's metadata is not JSON.
        Raises IndexLockedError if another process is writing the folder.
        Raises IndexChangedError if another index has been saved there since this one was loaded from it.
        Raises IndexWriteError if the disk cannot be written.
        After an error the folder keeps the index it had.
        """
        with locked(path), self._writing:
            self._prepared_view()
            settings = {
                field.name: as_json(getattr(self.settings, field.name)) for field in fields(self.settings)
            }
            try:
                usable_settings(self.scheme.settings_type, settings)
            except (TypeError, ValueError) as error:
                raise InputError(f"the index cannot be saved: {error}") from error
            source = getattr(self.encoder, "source", None) or self.encoder.name
            encoder = {"name": self.encoder.name, "source": source}
            manifest = {"kind": self.scheme.kind, "encoder": encoder, "settings": settings}
            parts = [(part, self.scheme.kept(part.block)) for part in self._parts]
            loaded_from, versions = self._loaded_from or (None, None)
            known = versions if Path(path).resolve() == loaded_from else None
            write_index(path, manifest, parts, known=known)

    @staticmethod
    def lock(path: str | Path, timeout: float = WAIT) -> AbstractContextManager[Any]:
        """Lock the folder `path` against other writers, to load, change and save its index.

        with HybridIndex.lock(path):
            index = load_index(path)
            index.add(documents)
            index.save(path)

        path: folder of the index; made if it does not exist.
        timeout: seconds to wait for another writer.
        Raises IndexLockedError when the time is over.
        """
        return locked(path, timeout)

    @classmethod
    def load(
        cls,
        path: str | Path,
        encoder: Encoder | None = None,
        *,
        verify: Verify = "full",
        trusted: bool = False,
        **settings: Any,
    ) -> Self:
        """Load a saved index; its vectors are memory-mapped.

        path: folder of the index.
        encoder: the encoder that the index was built with.
        verify: "full" (the default) reads every file once and compares checksums, which takes time in
            proportion to the size on disk; "shape" compares sizes, for large indexes on a disk that
            you trust.
        trusted: use the faiss indexes that were saved, if there are any. faiss reads them without checks,
            so somebody who made one to do harm can harm the process: pass True only for files of your own.
            By default the first search builds them again.
        settings: new values for settings that only searches read; of the others, only the value that was
            saved, for instance the segmenter.
        Raises IndexFormatError if the index is damaged or its kind, version or encoder differs, and
        InputError for any other setting.
        """
        path = as_path("path", path)
        manifest, parts = read_index(path, verify)
        cls._check_changes(manifest["settings"], settings)
        if manifest["kind"] != cls.scheme_type.kind:
            raise IndexFormatError(
                f"{path} holds a {manifest['kind']!r} index, not {cls.scheme_type.kind!r}; "
                "open it with load_index(path)"
            )
        _check_encoder(path, manifest["encoder"]["name"], encoder)
        try:
            saved = usable_settings(cls.scheme_type.settings_type, manifest["settings"])
        except (TypeError, ValueError) as error:
            raise IndexFormatError(f"{path} is damaged ({error}); build the index again") from error
        index = cls(encoder, **{**saved, **settings})
        index._parts = tuple(parts)
        index._loaded_from = path.resolve(), {version_of(manifest)}
        if trusted:
            index._prepared_view()  # a damaged faiss index is an error here, not in a search
        else:
            for part in parts:
                part.block.derived.pop("faiss", None)
        return index

    @classmethod
    def _check_changes(cls, saved: Mapping[str, Any], given: Mapping[str, Any]) -> None:
        """Raise InputError if a setting that decides the rows differs from the saved one."""
        different = {name for name, value in given.items() if saved.get(name) != as_json(value)}
        if fixed := sorted(different - cls.scheme_type.search_settings):
            raise InputError(
                f"{fixed[0]} cannot change in a saved {cls.__name__} (settings that can: "
                f"{', '.join(sorted(cls.scheme_type.search_settings)) or 'none'}); build the index again"
            )

    def _get(self, identifier: str) -> Document | None:
        return next(
            (document for part in self._parts if (document := part.get(identifier)) is not None), None
        )

    def _check_vectors(self, added: Block) -> None:
        """Raise ValueError unless the vectors of new rows are finite and as long as those of the others."""
        for name, column in added.columns.items():
            if column.dtype.kind == "f" and not np.isfinite(column).all():
                raise ValueError(f"column {name!r} holds numbers that are not finite")
        with_rows = (block.columns for block in (added, *(part.block for part in self._parts)) if len(block))
        widths = {columns["vectors"].shape[1] for columns in with_rows}
        if len(widths) > 1:
            raise ValueError(f"vectors of {' and '.join(map(str, sorted(widths)))} numbers; use one encoder")

    def _prepared_view(self) -> View:
        """The present state with all blocks prepared for searches."""
        with self._preparing:
            parts = self._parts
            if self._view is None or self._view[0] is not parts:
                view = View.of(parts)
                for part in view.parts:
                    if part.block.prepared is None:
                        part.block.prepared = self.scheme.prepare(part.block)
                self._view = parts, view
            return self._view[1]

    def _ready(self, wanted: Filter | None = None) -> View:
        """The present state, for a search of the documents that match a filter."""
        view = self._prepared_view()
        if not len(self):
            raise EmptyIndexError(
                f"the index holds {len(self.document_ids)} documents and no text; add documents first"
            )
        if wanted is None:
            return view
        if getattr(self.settings, "filter_statistics", "shared") == "shared":
            return view.within(wanted)
        with self._preparing:
            return view.holding_only(wanted, self.scheme.prepare)


class SentenceIndex(SentenceSearch, DocumentIndex):
    """An index of sentences; each is scored together with its context."""

    scheme: SentenceScheme

    @property
    @override
    def returns(self) -> Returns:
        return self.scheme.returns

    @override
    def _find(self, asked: SentenceQuery) -> list[Candidate]:
        view = self._ready(asked.filter)
        if view.matches_nothing:
            return []
        hits = self.scheme.find(
            view, asked.text, asked.vector, asked.top_k, alpha=asked.alpha, returns=asked.returns
        )
        candidates = view.candidates(hits, self.score_scale)
        rows = hits.rows.tolist()
        texts = {c.doc_id: view.document(row).text for c, row in zip(candidates, rows, strict=True)}
        n_wide = {"sentence": 0, "mixed": 1, "passage": len(candidates)}[asked.returns]
        candidates[:n_wide] = widen_to_passages(
            candidates[:n_wide],
            [texts[candidate.doc_id] for candidate in candidates[:n_wide]],
            [tokens_of_passage(view, row) for row in rows[:n_wide]],
        )
        return merge_neighbours(candidates, texts) if asked.merge_adjacent else candidates

    def neighbours(self, sentences: Sequence[Candidate], reach: int) -> list[Stretch]:
        """Return the stretches of `sentences` with up to `reach` sentences before and after each.

        Each sentence is in one stretch; stretches of one document have a sentence between them. A candidate
        that is not a sentence of the index is left out. Nothing is encoded.
        """
        return self._ready().stretches(sentences, reach, self.score_scale) if sentences else []


def _check_encoder(path: Path, built_with: str | None, encoder: Encoder | None) -> None:
    if encoder is not None:
        check_text("the name of the encoder", getattr(encoder, "name", None))
    given = encoder.name if encoder else None
    if built_with != given:
        raise IndexFormatError(
            f"{path} was built with encoder {built_with!r} but {given!r} was given; "
            f"load it with load_encoder({built_with!r}) or build it again"
        )
