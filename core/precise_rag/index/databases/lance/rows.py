"""Rows of LanceDB as Arrow tables."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from precise_rag._extras import require
from precise_rag.index.arrays.draws import lottery
from precise_rag.index.arrays.forms import check_finite, check_numbers, ensure
from precise_rag.index.arrays.words import MOST_NUMBERS
from precise_rag.index.databases import facets
from precise_rag.index.databases.checked import reading
from precise_rag.index.databases.counted import CountedRows, counted_rows, ends_of
from precise_rag.index.databases.engine import FoundSentence, StoredDocument, StoredSentence
from precise_rag.index.databases.found import as_found
from precise_rag.types import FloatArray, IntArray

_PLACE = ("doc_id", "place", "start", "end", "n_tokens", "passage_start", "passage_end")
READ = (*_PLACE, "text", "above", "metadata")
"""Columns of a FoundSentence."""
NONE = np.zeros(0, dtype=np.int64)
SETTINGS = b"precise-rag"
"""Where the schema holds them."""


def row_schema(dimension: int, settings: bytes) -> Any:
    """The schema of the rows; settings: what the collection is made with.

    Vectors are float32 whatever the precision: LanceDB compares float16 several times more slowly on most
    processors. The column "scoring" has them in the precision of the settings.
    """
    arrow = require("pyarrow", extra="lancedb")
    columns: list[tuple[str, Any]] = [
        *((name, arrow.string()) for name in ("id", "doc_id")),
        *((name, arrow.int32()) for name in ("place", "size", "start", "end", "n_tokens")),
        *((name, arrow.int32()) for name in ("passage_start", "passage_end", "lottery")),
        *((name, arrow.string()) for name in ("text", "above", "words", "metadata", "digest")),
        ("scoring", arrow.binary()),
        ("counts", arrow.binary()),
        ("vector", arrow.list_(arrow.float32(), dimension)),
        ("facets", arrow.list_(arrow.string())),
        ("compared", arrow.json_(arrow.utf8())),
    ]
    return arrow.schema(columns, metadata={SETTINGS: settings})


def row_table(schema: Any, documents: Sequence[StoredDocument]) -> Any:
    """The rows of documents as Arrow; a document without text has one row, with place -1."""
    arrow = require("pyarrow", extra="lancedb")
    dimension = schema.field("vector").type.list_size
    precision = precision_of(schema)
    pairs = [(d, i, s) for d in documents for i, s in enumerate(d.sentences)]
    empty = [document for document in documents if not document.sentences]
    n = len(pairs)
    owners = [document for document, _, _ in pairs] + empty
    places = [place for _, place, _ in pairs] + [-1] * len(empty)
    numbers = {
        "start": [s.start for _, _, s in pairs],
        "end": [s.end for _, _, s in pairs],
        "n_tokens": [s.n_tokens for _, _, s in pairs],
        "passage_start": [s.passage.start for _, _, s in pairs],
        "passage_end": [s.passage.end for _, _, s in pairs],
    }
    vectors = np.zeros((len(owners), dimension), dtype=np.float32)
    if n:
        vectors[:n] = np.stack([s.vector for _, _, s in pairs])
    columns = {
        "id": [f"{d.id}\n{place}" for d, place in zip(owners, places, strict=True)],
        "doc_id": [document.id for document in owners],
        "place": places,
        "size": [len(document.sentences) for document in owners],
        **{name: values + [0] * len(empty) for name, values in numbers.items()},
        "lottery": lottery([document.id for document in owners], places),
        "text": [s.text for _, _, s in pairs] + [""] * len(empty),
        "above": [s.above for _, _, s in pairs] + [""] * len(empty),
        "words": [" ".join(map(str, s.words.tolist())) for _, _, s in pairs] + [""] * len(empty),
        "digest": [document.digest for document in owners],
        "scoring": [_scoring(s, precision) for _, _, s in pairs] + [b""] * len(empty),
        "counts": arrow.nulls(len(owners), arrow.binary()),
        "vector": arrow.FixedSizeListArray.from_arrays(arrow.array(vectors.ravel()), dimension),
        **metadata_columns([d.id for d in owners], {d.id: d.metadata for d in documents}),
    }
    return arrow.table({name: columns[name] for name in schema.names}).cast(plain(schema))


class ScoredRows(NamedTuple):
    """What scores rows, read from their column "scoring".

    passages: (n,) where the passage of each begins. vectors: (n, d) float32. counted: their words.
    """

    passages: IntArray
    vectors: FloatArray
    counted: CountedRows


def precision_of(schema: Any) -> str:
    """How the column "scored" holds vectors: "<f4" or "<f2"."""
    with reading("settings"):
        settings = json.loads(schema.metadata[SETTINGS])["settings"]
        return "<f4" if settings["precision"] == "float32" else "<f2"


def _scoring(sentence: StoredSentence, precision: str) -> bytes:
    """What scores a sentence, as one value: LanceDB reads each column of a row separately."""
    vector = sentence.vector.astype(precision).tobytes()
    padding = bytes(-len(vector) % 4)
    return np.array([sentence.passage.start], dtype="<i4").tobytes() + sentence.counted + vector + padding


def scored_rows(column: Any, dimension: int, precision: str) -> ScoredRows:
    """Read (n,) rows of the column "scoring"; dimension, precision: of the vectors.

    Raises DamagedRowError if they are something else.
    """
    column = column.combine_chunks()
    sizes = np.frombuffer(column.buffers()[1], dtype=np.int32)[column.offset :][: len(column) + 1]
    width = -(-dimension * np.dtype(precision).itemsize // 4)
    with reading("scoring"):
        ensure(not (np.diff(sizes) % 4).any(), "no whole numbers")
        values = np.frombuffer(column.buffers()[2] or b"", np.uint8)[sizes[0] : sizes[-1]].copy().view("<i4")
        bounds = (sizes - sizes[0]).astype(np.int64) // 4
        counted = counted_rows(values, bounds[:-1] + 1, bounds[1:] - width)
        behind = ends_of(bounds[:-1] + 1, counted)
        ensure((behind + width == bounds[1:]).all(), "a vector of another width")
        vectors = values[behind[:, None] + np.arange(width)].view(precision)[:, :dimension]
        check_finite({"vector": vectors})
        passages = values[bounds[:-1]].astype(np.int64)
        check_numbers("the passages", passages, 0, 2**31)
    return ScoredRows(passages, vectors.astype(np.float32), counted)


def plain(schema: Any) -> Any:
    """The schema for data that is written: JSON is text there."""
    arrow = require("pyarrow", extra="lancedb")
    fields = [arrow.field(f.name, arrow.json_(arrow.utf8())) if f.name == "compared" else f for f in schema]
    return arrow.schema(fields)


def select(table: Any, where: str, columns: Sequence[str], limit: int | None = None) -> Any:
    """Columns of the rows that meet a condition."""
    return table.search().where(where).select(list(columns)).limit(limit).to_arrow()


def _json_column(values: Sequence[str]) -> Any:
    arrow = require("pyarrow", extra="lancedb")
    return arrow.ExtensionArray.from_storage(arrow.json_(arrow.utf8()), arrow.array(values, arrow.utf8()))


def sentences(table: Any) -> list[FoundSentence]:
    """The rows of a table of the columns `READ`."""
    columns = (table[name].to_pylist() for name in READ)
    return [as_found(*row) for row in zip(*columns, strict=True)]


def numbers_of(column: Any) -> IntArray:
    """The numbers in a column of texts, one after another."""
    with reading("words"):
        numbers = np.array(" ".join(column.to_pylist()).split(), dtype=np.int64)
        check_numbers("the column", numbers, 1, MOST_NUMBERS + 1)
    return numbers


def metadata_columns(owners: Sequence[str], metadata: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The columns that follow from the metadata of documents.

    owners: (n,) the document of each row. metadata: of each document.
    """
    arrow = require("pyarrow", extra="lancedb")
    written = {name: json.dumps(dict(about), ensure_ascii=False) for name, about in metadata.items()}
    labels = {name: facets.labels(about) for name, about in metadata.items()}
    compared = {name: _compared(about) for name, about in metadata.items()}
    return {
        "metadata": arrow.array([written[name] for name in owners], arrow.string()),
        "facets": arrow.array([labels[name] for name in owners], arrow.list_(arrow.string())),
        "compared": _json_column([compared[name] for name in owners]),
    }


def _compared(metadata: Mapping[str, Any]) -> str:
    """JSON of the numbers and strings in the metadata, by the type and the name of each field."""
    numbers = {f"number {field}": value for field, value in facets.numbers(metadata).items()}
    return json.dumps(numbers | {f"text {field}": value for field, value in facets.texts(metadata).items()})
