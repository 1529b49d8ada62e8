"""Rows and heads as points of Qdrant."""

import json
from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Any

import numpy as np

from precise_rag._extras import require
from precise_rag.filters.values import ID, OWN
from precise_rag.index.databases import facets
from precise_rag.index.databases.engine import FoundSentence, StoredSentence
from precise_rag.index.databases.qdrant.records import Head, Row, head_key
from precise_rag.types import Span

LEVELS, LEVEL_BYTES = 5, 6
"""Qdrant orders floats alone: a string, and a number as text, is ordered by numbers of six bytes each, and by
its length."""


def row_point(row: Row, lottery: int) -> Any:
    """A sentence as a point."""
    models = require("qdrant_client.models", extra="qdrant")
    sentence = row.sentence
    vector: dict[str, Any] = {"dense": sentence.vector.tolist()}
    if len(sentence.words):
        indices, values = sentence.words.tolist(), sentence.weights.tolist()
        vector["words"] = models.SparseVector(indices=indices, values=values)
    payload = {
        "doc_id": row.doc_id,
        "version": row.version,
        "place": row.place,
        "start": sentence.start,
        "end": sentence.end,
        "n_tokens": sentence.n_tokens,
        "passage": list(sentence.passage),
        "text": sentence.text,
        "above": sentence.above,
        "words": sentence.words.tolist(),
        "counted": b64encode(sentence.counted).decode(),
        "lottery": lottery,
        **_levels(ID, row.doc_id),
        **compared(row.metadata),
    }
    return models.PointStruct(id=row.key, vector=vector, payload=payload)


def compared(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """What filters compare, as fields of a payload."""
    payload: dict[str, Any] = {"facets": facets.labels(metadata)}
    for field, number in facets.numbers(metadata).items():
        payload |= _levels(number_field(field), number)
    for field, text in facets.texts(metadata).items():
        payload[text_field(field)] = text
        payload |= _levels(field, text)
    return payload


def _levels(field: str, text: str) -> dict[str, int]:
    return {level_field(field, i): value for i, value in enumerate(string_levels(text))}


def number_field(field: str) -> str:
    """What `level_field` takes for the number of a field; no field of the metadata has such a name."""
    return f"{OWN}number {field}"


def text_field(field: str) -> str:
    """Where the payload has the string of a field."""
    return f"t{facets.hashed(field)}"


def level_field(field: str, level: int) -> str:
    """Where the payload has one of the `string_levels` of a field's string, or of a `number_field`."""
    return f"o{level}{facets.hashed(field)}"


def string_levels(text: str) -> tuple[int, ...]:
    """Numbers that are ordered as the strings are, up to `LEVELS * LEVEL_BYTES` bytes of them."""
    data = text.encode("utf-8", "surrogatepass")
    parts = [data[i * LEVEL_BYTES : (i + 1) * LEVEL_BYTES].ljust(LEVEL_BYTES, b"\0") for i in range(LEVELS)]
    return (*(int.from_bytes(part, "big") for part in parts), len(data))


def head_point(head: Head) -> Any:
    """A head as a point."""
    models = require("qdrant_client.models", extra="qdrant")
    payload = {
        "doc_id": head.doc_id,
        "version": head.version,
        "digest": head.digest,
        "size": head.size,
        "metadata": json.dumps(dict(head.metadata)),
        "facets": facets.labels(head.metadata),
    }
    return models.PointStruct(id=head_key(head.doc_id), vector={}, payload=payload)


def as_head(point: Any) -> Head:
    """The head that a point is."""
    about = point.payload
    metadata = json.loads(about["metadata"])
    return Head(about["doc_id"], about["version"], about["digest"], about["size"], metadata)


def as_found(point: Any) -> FoundSentence:
    """The row that a point is, without metadata."""
    about = point.payload
    names = ("doc_id", "place", "start", "end", "n_tokens", "text", "above")
    values = {name: about[name] for name in names}
    return FoundSentence(**values, passage=Span(*about["passage"]), metadata={})


def as_stored(point: Any) -> StoredSentence:
    """The sentence that a point with its vectors is."""
    read, words = as_found(point), point.vector.get("words")
    weights = {} if words is None else dict(zip(words.indices, words.values, strict=True))
    return StoredSentence(
        start=read.start,
        end=read.end,
        n_tokens=read.n_tokens,
        passage=read.passage,
        text=read.text,
        above=read.above,
        vector=np.array(point.vector["dense"], dtype=np.float32),
        words=np.array(point.payload["words"], dtype=np.int64),
        weights=np.array([weights[word] for word in point.payload["words"]], dtype=np.float32),
        counted=counted(point),
    )


def counted(point: Any) -> bytes:
    """The words of a point; see `packed`."""
    return b64decode(point.payload["counted"])
