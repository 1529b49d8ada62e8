"""A collection in Qdrant: the order in which documents are written; see the package."""

import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, Self

from typing_extensions import override

from precise_rag._extras import require
from precise_rag._processes import ProcessLock
from precise_rag.errors import DatabaseError
from precise_rag.index.databases.engine import Engine, StoredDocument
from precise_rag.index.databases.qdrant.client import Location, ServerClient
from precise_rag.index.databases.qdrant.records import Head, Row, is_settled, new_version, row_key
from precise_rag.index.databases.qdrant.store import QdrantStore
from precise_rag.index.databases.qdrant.view import QdrantView
from precise_rag.redaction import remember

_LONGEST_WRITE = 1_800
"""Seconds after which a write is given up, so that the rows of a settled version are all there."""


class QdrantEngine(Engine):
    """A collection in Qdrant; see `Engine`.

    location: "qdrant:https://host:6333", with "?collection=name" for another collection than "precise";
        the key is in the environment variable QDRANT_API_KEY. "qdrant:folder" and "qdrant::memory:" are the
        client's own engine, which is made for tests: one process, and no more than some thousand sentences.
    client: a QdrantClient to use in place of one for the address. Default: none.

    The number of rows and the counts of words include rows that are being written or deleted. They also
    include rows that a crash or two writers of one document leave behind, until `optimize` deletes them
    after an hour. Clocks of all writers and readers must agree to half an hour.
    """

    def __init__(self, location: str, *, client: Any = None) -> None:
        given = Location.parse(location)
        is_local = client is None and not given.address.startswith(("http://", "https://"))
        opened = partial(_open, given.address) if client is None else partial(_given, client)
        server = ServerClient(given.public, opened, one_at_a_time=is_local)
        self._set_up(QdrantStore(server, given.public, given.collection, is_local=is_local))

    @classmethod
    def over(cls, store: QdrantStore) -> Self:
        """Return an engine over collections that are open already."""
        engine = cls.__new__(cls)
        engine._set_up(store)
        return engine

    def _set_up(self, store: QdrantStore) -> None:
        self.store = store
        self.location = store.location
        self._known: dict[str, float] = {}
        self._lock = ProcessLock()

    @override
    def settings(self) -> dict[str, Any] | None:
        return self.store.settings()

    @override
    def create(self, settings: Mapping[str, Any], dimension: int) -> None:
        self.store.create(settings, dimension)

    @override
    @contextmanager
    def view(self) -> Iterator[QdrantView]:
        yield QdrantView(self.store, self._known)

    @override
    def digests(self, ids: Iterable[str] | None = None) -> dict[str, str]:
        return {identifier: head.digest for identifier, head in self.store.heads(ids).items()}

    @override
    def sizes(self) -> dict[str, int]:
        return {identifier: head.size for identifier, head in self.store.heads().items()}

    @override
    def write(self, documents: Sequence[StoredDocument]) -> None:
        self._write(documents, {})

    @override
    def describe(self, documents: Sequence[StoredDocument]) -> set[str]:
        """Writes the rows again, as filters compare what is in them."""
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

    @override
    def delete(self, ids: Sequence[str]) -> None:
        with self._lock:
            gone = self.store.heads(ids)
            self.store.drop_heads(list(gone))
        self.store.drop_rows([head.version for head in gone.values()])

    @override
    def optimize(self) -> None:
        """Deletes the rows that crashes left behind, after an hour."""
        left = {version for version in self.store.versions() if is_settled(version)}
        left -= {head.version for head in self.store.heads().values()}
        self.store.drop_rows(left)

    @override
    def close(self) -> None:
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


def _open(address: str) -> Any:
    client = require("qdrant_client", extra="qdrant").QdrantClient
    if address == ":memory:":
        return client(":memory:")
    if not address.startswith(("http://", "https://")):
        return client(path=address, force_disable_check_same_thread=True)
    key = os.environ.get("QDRANT_API_KEY")
    remember(key)
    return client(url=address, api_key=key, timeout=60)


def _given(client: Any) -> Any:
    return client
