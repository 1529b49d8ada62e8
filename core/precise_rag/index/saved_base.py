"""Saving an index in a folder, and loading it ready for searches."""

from abc import abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Self

from precise_rag._processes import ProcessLock
from precise_rag.checks import as_path, check_text
from precise_rag.errors import IndexFormatError, InputError
from precise_rag.index import nearest
from precise_rag.index.arrays.collection import Columns
from precise_rag.index.arrays.faiss_rows import FaissBackend, check_faiss
from precise_rag.index.arrays.vectors import read_vectors
from precise_rag.index.arrays.words import Vocabulary
from precise_rag.index.document_base import DocumentCollection
from precise_rag.index.nearest import load_rows, saved_rows, without_rows
from precise_rag.index.segments import Part, Segment
from precise_rag.index.snapshot import Snapshot
from precise_rag.index.storage.files import Verify
from precise_rag.index.storage.folder import locked, write_index
from precise_rag.index.storage.layout import check_index, check_settings
from precise_rag.index.storage.lock import WAIT
from precise_rag.index.storage.manifest import version_of
from precise_rag.index.storage.reading import read_index
from precise_rag.index.storage.trust import without_models
from precise_rag.protocols import Encoder
from precise_rag.types import FloatArray


class SavedIndex(DocumentCollection):
    """A collection of documents that is prepared for searches, saved and loaded.

    Subclasses define what to compute once from the rows of a segment (`_prepare`).
    """

    kind: ClassVar[str]
    search_settings: ClassVar[frozenset[str]] = frozenset()
    """Settings that only affect searches; `load` may change them."""

    def __init__(self, encoder: Encoder | None, **settings: Any) -> None:
        super().__init__(encoder, **settings)
        if (backend := self._faiss()) is not None:
            check_faiss(backend.gpu)
        self._present: tuple[tuple[Part, ...], Snapshot] | None = None
        self._loaded_from: tuple[Path, set[str]] | None = None
        self._preparing = ProcessLock()

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_present": None}

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
        settings: new values for settings that only affect searches (`search_settings`); other
            settings only with the value that was saved, for instance the segmenter.
        Raises IndexFormatError if the index is damaged or its kind, version or encoder differs, and
        InputError for any other setting.
        """
        path = as_path("path", path)
        manifest, parts = read_index(path, verify)
        cls._check_changes(manifest["settings"], settings)
        if manifest["kind"] != cls.kind:
            raise IndexFormatError(
                f"{path} holds a {manifest['kind']!r} index, not {cls.kind!r}; open it with load_index(path)"
            )
        _check_encoder(path, manifest["encoder"]["name"], encoder)
        try:
            for part in parts:
                cls._check(manifest, part.segment, part.segment.extras)
        except (TypeError, ValueError) as error:
            raise IndexFormatError(f"{path} is damaged ({error}); build the index again") from error
        index = cls(encoder, **{**without_models(manifest["settings"]), **settings})
        for part in parts:
            part.segment.words = Vocabulary(index._stop_words, part.segment.words.words())
            if not trusted:
                part.segment.extras = without_rows(part.segment.extras)
        index._parts = tuple(parts)
        index._loaded_from = Path(path).resolve(), {version_of(manifest)}
        if trusted:
            index._prepared_snapshot()  # a damaged faiss index is an error here, not in a search
        return index

    @classmethod
    def _check_changes(cls, saved: Mapping[str, Any], given: Mapping[str, Any]) -> None:
        """Raise InputError if a setting that is given would change what is saved."""
        changed = {name for name, value in given.items() if saved.get(name) != as_json(value)}
        if fixed := sorted(changed - cls.search_settings):
            raise InputError(
                f"{fixed[0]} cannot change in a saved {cls.__name__} (settings that can: "
                f"{', '.join(sorted(cls.search_settings)) or 'none'}); build the index again"
            )

    @classmethod
    def _check(cls, manifest: Mapping[str, Any], segment: Segment, extras: Columns) -> None:
        """Raise ValueError if what is saved cannot be loaded and searched."""
        check_settings(cls.kind, cls.settings_type, manifest["settings"])
        settings = cls.settings_type(**without_models(manifest["settings"]))
        check_index(cls.kind, settings, len(segment.words), segment.collection, extras)

    @abstractmethod
    def _prepare(self, segment: Segment) -> Any:
        """Compute what all searches of a segment share; called once for each segment that has rows."""

    def _faiss(self) -> FaissBackend | None:
        """The faiss indexes that searches use; None for none."""
        return FaissBackend.of(getattr(self.settings, "backend", ""))

    def _scored_vectors(self, segment: Segment) -> FloatArray:
        """(n, d) vectors whose products with a query's vector are the dense scores, for faiss."""
        return read_vectors(segment.collection.columns, slice(None))

    def _decides_vectors(self) -> dict[str, Any]:
        """The settings that `_scored_vectors` reads; JSON."""
        return {}

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
        backend = self._faiss()
        near = {} if backend is None else saved_rows(segment, backend, self._decides_vectors())
        return {**without_rows(segment.extras), **near}

    def _prepared_snapshot(self) -> Snapshot:
        """The present state, with all segments prepared; without rows for an index without text."""
        with self._preparing:
            parts = self._parts
            if self._present is None or self._present[0] is not parts:
                snapshot = Snapshot.of(parts)
                for part in snapshot.parts:
                    self._make_ready(part.segment)
                self._present = parts, snapshot
            return self._present[1]

    def _make_ready(self, segment: Segment) -> None:
        if segment.prepared is None:
            segment.prepared = self._prepare(segment)
        backend = self._faiss()
        if backend is not None and segment.near is None and len(segment.collection) >= nearest.EXACT_ROWS:
            vectors = partial(self._scored_vectors, segment)
            segment.near = load_rows(segment, backend, self._decides_vectors(), vectors)


def _check_encoder(path: Path, built_with: str | None, encoder: Encoder | None) -> None:
    if encoder is not None:
        check_text("the name of the encoder", getattr(encoder, "name", None))
    given = encoder.name if encoder else None
    if built_with != given:
        raise IndexFormatError(
            f"{path} was built with encoder {built_with!r} but {given!r} was given; "
            f"load it with load_encoder({built_with!r}) or build it again"
        )


def as_json(value: object) -> object:
    """A setting as JSON; a segmenter object is recorded by its name."""
    plain = value is None or isinstance(value, str | int | float | tuple | list | dict)
    return value if plain else getattr(value, "name", str(value))
