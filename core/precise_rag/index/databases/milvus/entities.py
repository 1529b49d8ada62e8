"""Rows and heads as entities of Milvus."""

import json
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from precise_rag._extras import require
from precise_rag.errors import InputError
from precise_rag.filters.values import ID
from precise_rag.index.databases import facets
from precise_rag.index.databases.clusters import Head, Row
from precise_rag.index.databases.clusters.store import head_key
from precise_rag.index.databases.engine import FoundSentence, StoredSentence
from precise_rag.types import Span

READ = [
    "key",
    "doc_id",
    "version",
    "place",
    "begin",
    "stop",
    "n_tokens",
    "passage_start",
    "passage_end",
    "text",
    "above",
]
"""Fields of a FoundSentence. "start" and "end" are words of Milvus."""
_BITS = {ord("0"): "\ue001", ord("1"): "\ue002"}
_WILDCARDS = str.maketrans(
    {sign: "\ue000" + f"{i:03b}".translate(_BITS) for i, sign in enumerate("%_\\\ue000\ue001\ue002")}
)
"""Milvus Lite cannot escape wildcards. Each becomes four signs of no alphabet, of which the first alone is
U+E000, and so do these signs: a string is in another one if, and only if, it is so after this."""
_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r"})
"""Of a string in an expression; Milvus Lite knows none of a character's number."""
_MOST_BYTES, _MOST_ITEMS = 65_535, 4_096
"""Of a text, and of a list, in Milvus."""
_MOST_TITLE_BYTES = 4_000
"""Of 1,000 characters."""


def row_schema(client: Any, dimension: int) -> Any:
    """The schema of the rows."""
    kinds = require("pymilvus", extra="milvus").DataType
    schema = client.create_schema(auto_id=False, enable_dynamic_field=False)
    schema.add_field("key", kinds.VARCHAR, is_primary=True, max_length=36)
    for name, length in (("doc_id", _MOST_BYTES), ("version", 32), ("text", _MOST_BYTES)):
        schema.add_field(name, kinds.VARCHAR, max_length=length)
    schema.add_field("counted", kinds.VARCHAR, max_length=_MOST_BYTES)
    schema.add_field("above", kinds.VARCHAR, max_length=_MOST_TITLE_BYTES)
    for name in ("place", "begin", "stop", "n_tokens", "passage_start", "passage_end", "lottery"):
        schema.add_field(name, kinds.INT64)
    schema.add_field("words", kinds.ARRAY, element_type=kinds.INT64, max_capacity=_MOST_ITEMS)
    _add_facets(schema, kinds)
    schema.add_field("fields", kinds.JSON)
    schema.add_field("vector", kinds.FLOAT_VECTOR, dim=dimension)
    schema.add_field("weights", kinds.SPARSE_FLOAT_VECTOR)
    return schema


def head_schema(client: Any) -> Any:
    """The schema of the heads; every collection must have a vector."""
    kinds = require("pymilvus", extra="milvus").DataType
    schema = client.create_schema(auto_id=False, enable_dynamic_field=False)
    schema.add_field("key", kinds.VARCHAR, is_primary=True, max_length=36)
    for name, length in (("doc_id", _MOST_BYTES), ("version", 32), ("digest", 64), ("metadata", _MOST_BYTES)):
        schema.add_field(name, kinds.VARCHAR, max_length=length)
    schema.add_field("size", kinds.INT64)
    _add_facets(schema, kinds)
    schema.add_field("vector", kinds.FLOAT_VECTOR, dim=2)
    return schema


def row_entity(row: Row, lottery: int) -> dict[str, Any]:
    """A sentence as an entity. Raises InputError if Milvus cannot hold it."""
    sentence = row.sentence
    weights = dict(zip(sentence.words.tolist(), sentence.weights.tolist(), strict=True))
    counted = b64encode(sentence.counted).decode()
    about = f"document {row.doc_id!r}"
    _check(about, "id", len(row.doc_id.encode()), _MOST_BYTES, "bytes")
    _check(about, "sentence", len(sentence.text.encode()), _MOST_BYTES, "bytes")
    _check(about, "sentence", len(sentence.words), _MOST_ITEMS, "different words")
    _check(about, "sentence", len(counted), _MOST_BYTES, "bytes of counted words around it, 11 each,")
    return {
        "key": row.key,
        "doc_id": row.doc_id,
        "version": row.version,
        "text": sentence.text,
        "above": sentence.above,
        "place": row.place,
        "begin": sentence.start,
        "stop": sentence.end,
        "n_tokens": sentence.n_tokens,
        "passage_start": sentence.passage.start,
        "passage_end": sentence.passage.end,
        "lottery": lottery,
        "words": sentence.words.tolist(),
        "facets": _labels(row.doc_id, row.metadata),
        "fields": _compared(row.doc_id, row.metadata),
        "vector": sentence.vector.tolist(),
        "counted": counted,
        "weights": weights or {0: 1e-6},  # no word has the number 0, and a vector must have one
    }


def number_field(field: str) -> str:
    """Where `fields` has the number of a field."""
    return f"n{facets.hashed(field)}"


def text_field(field: str) -> str:
    """Where `fields` has the string of a field."""
    return f"t{facets.hashed(field)}"


def searched_field(field: str) -> str:
    """Where `fields` has the string of a field, or the document's id for "$id", for `like`."""
    return f"s{facets.hashed(field)}"


def without_wildcards(text: str) -> str:
    """A string without the characters that mean something in a pattern of `like`."""
    return text.translate(_WILDCARDS)


def head_entity(head: Head) -> dict[str, Any]:
    """A head as an entity. Raises InputError if Milvus cannot hold it."""
    metadata = json.dumps(dict(head.metadata), ensure_ascii=False)
    _check(f"document {head.doc_id!r}", "metadata", len(metadata.encode()), _MOST_BYTES, "bytes")
    return {
        "key": head_key(head.doc_id),
        "doc_id": head.doc_id,
        "version": head.version,
        "digest": head.digest,
        "size": head.size,
        "metadata": metadata,
        "facets": _labels(head.doc_id, head.metadata),
        "vector": [0.0, 0.0],
    }


def as_head(entity: Mapping[str, Any]) -> Head:
    """The head that an entity is."""
    values = {name: entity[name] for name in ("doc_id", "version", "digest", "size")}
    return Head(**values, metadata=json.loads(entity["metadata"]))


def as_found(entity: Mapping[str, Any]) -> FoundSentence:
    """The row that an entity is, without metadata."""
    return FoundSentence(
        doc_id=entity["doc_id"],
        place=entity["place"],
        start=entity["begin"],
        end=entity["stop"],
        n_tokens=entity["n_tokens"],
        passage=Span(entity["passage_start"], entity["passage_end"]),
        text=entity["text"],
        above=entity["above"],
        metadata={},
    )


def as_stored(entity: Mapping[str, Any]) -> StoredSentence:
    """The sentence that an entity with all its fields is."""
    found = as_found(entity)
    weights = [entity["weights"][word] for word in entity["words"]]
    return StoredSentence(
        start=found.start,
        end=found.end,
        n_tokens=found.n_tokens,
        passage=found.passage,
        text=found.text,
        above=found.above,
        vector=np.array(entity["vector"], dtype=np.float32),
        words=np.array(list(entity["words"]), dtype=np.int64),
        weights=np.array(weights, dtype=np.float32),
        counted=counted(entity),
    )


def counted(entity: Mapping[str, Any]) -> bytes:
    """The words of an entity; see `packed`."""
    return b64decode(entity["counted"])


def _add_facets(schema: Any, kinds: Any) -> None:
    schema.add_field(
        "facets", kinds.ARRAY, element_type=kinds.VARCHAR, max_capacity=_MOST_ITEMS, max_length=24
    )


def _compared(doc_id: str, metadata: Mapping[str, Any]) -> dict[str, Any]:
    """What filters compare beside the labels."""
    texts = facets.texts(metadata)
    searched = {ID: doc_id, **texts}
    return {
        **{number_field(field): value for field, value in facets.numbers(metadata).items()},
        **{text_field(field): value for field, value in texts.items()},
        **{searched_field(field): without_wildcards(value) for field, value in searched.items()},
    }


def _labels(doc_id: str, metadata: Mapping[str, Any]) -> list[str]:
    given = {
        *facets.labels(metadata),
        *map(facets.number_label, facets.numbers(metadata)),
        *map(facets.text_label, facets.texts(metadata)),
    }
    labels = sorted(map(facets.hashed, given))
    _check(f"document {doc_id!r}", "metadata", len(labels), _MOST_ITEMS, "values")
    return labels


def _check(about: str, what: str, size: int, most: int, unit: str) -> None:
    if size > most:
        raise InputError(f"{about}: Milvus holds at most {most:,} {unit} of a {what}, got {size:,}")


def quoted(values: Iterable[str]) -> str:
    """Strings as a list of an expression."""
    return f"[{', '.join(map(literal, values))}]"


def literal(value: str) -> str:
    """A string of an expression."""
    return f'"{value.translate(_ESCAPES)}"'
