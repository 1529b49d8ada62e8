"""The records of a collection: rows, the heads of documents, and their names."""

import time
import uuid
from collections.abc import Mapping
from typing import Any, NamedTuple

from precise_rag.index.databases.engine import StoredSentence

_SETTLED = 3_600
"""Seconds after which the rows of a version are all there, if its head is."""


class Head(NamedTuple):
    """A document's record. version: of its rows. digest, size, metadata: see `StoredDocument`."""

    doc_id: str
    version: str
    digest: str
    size: int
    metadata: Mapping[str, Any]


class Row(NamedTuple):
    """A sentence to store. place: its number in the document. metadata: the document's."""

    key: str
    doc_id: str
    version: str
    place: int
    sentence: StoredSentence
    metadata: Mapping[str, Any]


class Hit(NamedTuple):
    """A row that a search found.

    passage: where its passage begins. counted: its words, see `packed`. score: an inner product.
    """

    key: str
    doc_id: str
    version: str
    passage: int
    counted: bytes
    score: float


def new_version() -> str:
    """A name that no version has had, of 32 characters; it begins with the time."""
    return f"{int(time.time()):010x}{uuid.uuid4().hex[:22]}"


def is_settled(version: str) -> bool:
    """Whether a version is so old that its rows are all there, if its head is; see `QdrantEngine`."""
    return int(version[:10], 16) < time.time() - _SETTLED


def row_key(version: str, place: int) -> str:
    """The key of a row: a UUID."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, f"{version}/{place}"))


def head_key(doc_id: str) -> str:
    """The key of a head: a UUID."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, f"document {doc_id}"))
