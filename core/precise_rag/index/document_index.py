"""The index that users have: documents and their rows, searched by a scheme, saved in a folder."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import fields
from pathlib import Path
from typing import Any, ClassVar, Self

from precise_rag.checks import as_path, check_text
from precise_rag.errors import EmptyIndexError, IndexFormatError, InputError
from precise_rag.filters import Filter, as_filter
from precise_rag.index.arrays.words import Vocabulary
from precise_rag.index.folder import WAIT, Verify, locked, read_index, version_of, write_index
from precise_rag.index.queries import Searched, check_search
from precise_rag.index.rows.documents import DocumentRows
from precise_rag.index.rows.nearest import without_rows
from precise_rag.index.rows.snapshot import Snapshot
from precise_rag.index.scheme import Scheme
from precise_rag.index.settings import as_json, usable_settings
from precise_rag.protocols import Encoder
from precise_rag.types import Candidate, Document, FloatArray, ScoreScale


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
        self._rows = DocumentRows(self.scheme)
        self._loaded_from: tuple[Path, set[str]] | None = None

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
        return len(self._rows)

    @property
    def document_ids(self) -> tuple[str, ...]:
        """Ids of all documents, including those without text."""
        return self._rows.ids

    @property
    def empty_document_ids(self) -> tuple[str, ...]:
        """Ids of the documents without text; searches cannot find them."""
        return self._rows.empty_ids

    def document(self, identifier: str) -> Document:
        """Return a document by its id. Raises InputError if it is not in the index."""
        return self._rows.document(identifier)

    def add(self, documents: Iterable[Document], *, show_progress: bool = False) -> None:
        """Add documents, or replace those whose ids are in the index.

        A document with the same text as before is not encoded again; only its metadata changes.
        Raises InputError if two of `documents` have the same id, or the encoder's vectors do not fit.
        The index stays as it was if anything is raised.
        """
        self._rows.add(documents, show_progress=show_progress)

    def delete(self, ids: Iterable[str]) -> None:
        """Delete documents by id. Raises InputError, and changes nothing, if an id is unknown.

        No search finds them or counts their words from then on. Their texts are removed from memory, and
        by the next `save` from the folder, when their segment is merged; `compact` does that at once.
        """
        self._rows.delete(ids)

    def compact(self) -> None:
        """Merge all segments into one, without deleted documents; the next `save` writes everything.

        Searches find the same as before, a little faster if there were many segments.
        """
        self._rows.compact()

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
        snapshot = self._ready(None if filter is None else as_filter(filter))
        if snapshot.matches_nothing:
            return []
        hits = self.scheme.find(snapshot, query, vector, top_k).within(snapshot.matching)
        return snapshot.candidates(hits, self.score_scale)

    def save(self, path: str | Path) -> None:
        """Save the index into the folder `path`; an index that is there is replaced in one step.

        Segments that the folder has are not written again.
        Raises InputError if the folder holds other files, or a document's metadata is not JSON.
        Raises IndexLockedError if another process is writing the folder.
        Raises IndexChangedError if another index has been saved there since this one was loaded from it.
        Raises IndexWriteError if the disk cannot be written.
        After an error the folder keeps the index it had.
        """
        with locked(path), self._rows.writing:
            self._rows.snapshot()
            manifest = self._manifest()
            try:
                usable_settings(self.scheme.settings_type, manifest["settings"])
            except (TypeError, ValueError) as error:
                raise InputError(f"the index cannot be saved: {error}") from error
            parts = [(part, self.scheme.kept(part.segment)) for part in self._rows.parts]
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
            proportion to the size on disk; "shape" compares sizes, shapes and types, for large
            indexes on a disk that you trust.
        trusted: use the faiss indexes that were saved, if there are any. faiss reads them without checks,
            so somebody who made one to do harm can harm the process: pass True only for files of your own.
            By default the first search builds them again, from the vectors that were checked.
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
        for part in parts:
            segment = part.segment
            segment.words = Vocabulary(index.scheme.stop_words, segment.words.words())
            if not trusted:
                segment.extras = without_rows(segment.extras)
        index._rows.parts = tuple(parts)
        index._loaded_from = path.resolve(), {version_of(manifest)}
        if trusted:
            index._rows.snapshot()  # a damaged faiss index is an error here, not in a search
        return index

    @classmethod
    def _check_changes(cls, saved: Mapping[str, Any], given: Mapping[str, Any]) -> None:
        """Raise InputError if a setting that decides the rows differs from the saved one."""
        changed = {name for name, value in given.items() if saved.get(name) != as_json(value)}
        if fixed := sorted(changed - cls.scheme_type.search_settings):
            raise InputError(
                f"{fixed[0]} cannot change in a saved {cls.__name__} (settings that can: "
                f"{', '.join(sorted(cls.scheme_type.search_settings)) or 'none'}); build the index again"
            )

    def _manifest(self) -> dict[str, Any]:
        encoder = self.encoder
        source = getattr(encoder, "source", None) or encoder.name
        return {
            "kind": self.scheme.kind,
            "encoder": {"name": encoder.name, "source": source},
            "settings": {f.name: as_json(getattr(self.settings, f.name)) for f in fields(self.settings)},
        }

    def _ready(self, wanted: Filter | None = None) -> Snapshot:
        """The present state, for a search of the documents that match a filter."""
        snapshot = self._rows.snapshot()
        if not len(self):
            raise EmptyIndexError(
                f"the index holds {len(self.document_ids)} documents and no text; add documents first"
            )
        if wanted is None:
            return snapshot
        if getattr(self.settings, "filter_statistics", "shared") == "shared":
            return snapshot.within(wanted)
        with self._rows.preparing:
            return snapshot.holding_only(wanted, self.scheme.prepare)


def _check_encoder(path: Path, built_with: str | None, encoder: Encoder | None) -> None:
    if encoder is not None:
        check_text("the name of the encoder", getattr(encoder, "name", None))
    given = encoder.name if encoder else None
    if built_with != given:
        raise IndexFormatError(
            f"{path} was built with encoder {built_with!r} but {given!r} was given; "
            f"load it with load_encoder({built_with!r}) or build it again"
        )
