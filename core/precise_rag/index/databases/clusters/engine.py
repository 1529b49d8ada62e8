"""The order in which documents are written on a server without transactions; see the package."""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from precise_rag._processes import ProcessLock
from precise_rag.errors import DatabaseError
from precise_rag.index.databases.clusters.store import Head, Row, Store, is_settled, new_version, row_key
from precise_rag.index.databases.clusters.view import ClusterView
from precise_rag.index.databases.engine import StoredDocument

_LONGEST_WRITE = 1_800
"""Seconds after which a write is given up, so that the rows of a settled version are all there."""


class ClusterEngine:
    """A collection in a `Store`; see `Engine`.

    The number of rows and the counts of words include rows that are being written or deleted. They also
    include rows that a crash or two writers of one document leave behind, until `optimize` deletes them
    after an hour. Clocks
    of all writers and readers must agree to half an hour.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.location = store.location
        self._known: dict[str, float] = {}
        self._lock = ProcessLock()

    def settings(self) -> dict[str, Any] | None:
        """See `Engine`."""
        return self.store.settings()

    def create(self, settings: Mapping[str, Any], dimension: int) -> None:
        """See `Engine`."""
        self.store.create(settings, dimension)

    @contextmanager
    def view(self) -> Iterator[ClusterView]:
        """See `Engine`."""
        yield ClusterView(self.store, self._known)

    def digests(self, ids: Iterable[str] | None = None) -> dict[str, str]:
        """See `Engine`."""
        return {identifier: head.digest for identifier, head in self.store.heads(ids).items()}

    def sizes(self) -> dict[str, int]:
        """See `Engine`."""
        return {identifier: head.size for identifier, head in self.store.heads().items()}

    def write(self, documents: Sequence[StoredDocument]) -> None:
        """See `Engine`."""
        self._write(documents, {})

    def describe(self, documents: Sequence[StoredDocument]) -> set[str]:
        """See `Engine`. Writes the rows again, as filters compare what is in them."""
        given = {document.id: document for document in documents}
        heads = self.store.heads(given)
        same = {name: head for name, head in heads.items() if head.digest == given[name].digest}
        changed = [head for name, head in same.items() if dict(head.metadata) != dict(given[name].metadata)]
        written = [given[head.doc_id]._replace(sentences=self.store.stored(head.version)) for head in changed]
        self._write(
            [d for d, head in zip(written, changed, strict=True) if len(d.sentences) == head.size],
            {head.doc_id: head.version for head in changed},
        )
        return given.keys() - same.keys()

    def delete(self, ids: Sequence[str]) -> None:
        """See `Engine`."""
        with self._lock:
            gone = self.store.heads(ids)
            self.store.drop_heads(list(gone))
        self.store.drop_rows([head.version for head in gone.values()])

    def optimize(self) -> None:
        """See `Engine`. Deletes the rows that crashes left behind, after an hour."""
        left = {version for version in self.store.versions() if is_settled(version)}
        left -= {head.version for head in self.store.heads().values()}
        self.store.drop_rows(left)
        self.store.optimize()

    def close(self) -> None:
        """See `Engine`."""
        self.store.close()

    def _write(self, documents: Sequence[StoredDocument], only: Mapping[str, str]) -> None:
        """Write documents; only: by id, the version that one must still have to be written."""
        begun = time.monotonic()
        heads = {d.id: Head(d.id, new_version(), d.digest, len(d.sentences), d.metadata) for d in documents}
        versions = [head.version for head in heads.values()]
        rows = [
            Row(row_key(version, place), document.id, version, place, sentence, document.metadata)
            for document, version in zip(documents, versions, strict=True)
            for place, sentence in enumerate(document.sentences)
        ]
        try:
            self.store.put_rows(rows)
            if time.monotonic() - begun > _LONGEST_WRITE:
                raise DatabaseError(
                    f"{self.location}: writing took too long; write fewer documents at a time"
                )
            with self._lock:
                old = self.store.heads(heads)
                kept = [
                    head
                    for name, head in heads.items()
                    if name not in only or (name in old and old[name].version == only[name])
                ]
                self.store.put_heads(kept)
        except BaseException:
            with suppress(Exception):
                self._drop_unless_present(heads)
            raise
        self.store.drop_rows([old[head.doc_id].version for head in kept if head.doc_id in old])
        self._drop_unless_present(heads)

    def _drop_unless_present(self, heads: Mapping[str, Head]) -> None:
        """Delete the rows of those versions that are not the present ones: another writer's are."""
        present = {head.version for head in self.store.heads(heads).values()}
        self.store.drop_rows([head.version for head in heads.values() if head.version not in present])
