"""Repeat the rows of a built collection under other ids, with turned vectors.

A row of the first copy has its own vector, and one of another copy its vector turned by a random angle; see
`benchmarks.scale.collection`.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as arrow
from pgvector import HalfVector
from pyarrow import compute

from benchmarks.scale.collection import turned
from precise_rag.index import HybridIndex
from precise_rag.index.arrays.collection import Collection
from precise_rag.index.arrays.draws import LOTTERY
from precise_rag.index.databases.lance import LanceEngine
from precise_rag.index.databases.lance.counts import change, entries, numbers_at
from precise_rag.index.databases.lance.rows import NONE, plain, select
from precise_rag.index.databases.postgres import PostgresEngine
from precise_rag.index.rows.segments import Part, Segment
from precise_rag.types import FloatArray

Spend = Callable[[str, Callable[[], Any]], Any]
"""Calls something and counts what it costs under a name."""


def repeat_folder(index: HybridIndex, times: int) -> None:
    """Repeat all documents of an index as one segment."""
    index.compact()
    segment = index._rows.parts[0].segment
    once = segment.collection
    columns = {
        name: np.tile(column, (times,) + (1,) * (column.ndim - 1)) for name, column in once.columns.items()
    }
    for copy in range(1, times):
        rows = slice(copy * len(once), (copy + 1) * len(once))
        columns["vectors"][rows] = of_copy(columns["vectors"][rows], copy)
    documents = {
        f"{copy}-{name}": replace(document, id=f"{copy}-{name}")
        for copy in range(times)
        for name, document in once.documents.items()
    }
    offsets = np.concatenate([[0], np.cumsum(np.tile(np.diff(once.offsets), times))])
    index._rows.parts = (Part(Segment(Collection(documents, offsets, columns), segment.words)),)


def repeat_lance(once: LanceEngine, engine: LanceEngine, times: int, spent: Spend) -> None:
    """Copy the rows of one collection to a new one, a number of times."""
    made = once.settings()
    assert made is not None
    table = select(once._open(), "place >= -1", once._open().schema.names)
    n_rows, dimension = len(table), table["vector"].type.list_size
    vectors = table["vector"].combine_chunks().flatten().to_numpy().reshape(n_rows, dimension)
    engine.create(made, dimension)
    counts = change(numbers_at(table), NONE)
    for number in range(times):
        rows = of_copy(vectors, number)
        columns = {name: table[name] for name in table.column_names}
        for name in ("id", "doc_id"):
            columns[name] = compute.binary_join_element_wise(f"{number}", columns[name], "-")
        columns["lottery"] = np.random.default_rng(number).integers(0, LOTTERY, n_rows).astype(np.int32)
        columns["scoring"] = arrow.array(rescored(table["scoring"].to_pylist(), rows), arrow.binary())
        columns["vector"] = arrow.FixedSizeListArray.from_arrays(arrow.array(rows.ravel()), dimension)
        its = arrow.table(columns).cast(plain(table.schema))
        copy = arrow.concat_tables([its, entries(table.schema, counts)])
        spent("write copies", lambda copy=copy: engine._open().add(copy))


def rescored(column: list[bytes], vectors: FloatArray) -> list[bytes]:
    """The values of the column "scoring" with other vectors; see `precise_rag.index.databases.lance.rows`."""
    halves = vectors.astype("<f2")
    return [
        value and value[: -vector.nbytes] + vector.tobytes()
        for value, vector in zip(column, halves, strict=True)
    ]


def repeat_postgres(once: PostgresEngine, engine: PostgresEngine, times: int, spent: Spend) -> None:
    """Copy the rows of one collection to a new one of the same server, a number of times."""
    made = once.settings()
    assert made is not None
    old, new = once._c, engine._c
    with once._connections.transaction(vectors=True) as run:
        found = run(f"SELECT key, vector FROM {old}_sentences ORDER BY key", binary=True).fetchall()
        documents, sentences = (
            run(f"SELECT max(key) FROM {old}_{t}").fetchone()[0] for t in ("documents", "sentences")
        )
    keys = [key for key, _ in found]
    vectors = np.array([vector.to_numpy() for _, vector in found], dtype=np.float32)
    engine.create(made, vectors.shape[1])
    with engine._connections.transaction(vectors=True) as run:
        run(f"CREATE TEMP TABLE turned (key bigint, vector halfvec({vectors.shape[1]})) ON COMMIT DROP")

        def write(copy: int) -> None:
            run(
                f"INSERT INTO {new}_documents SELECT key + {copy * documents}, '{copy}-' || id, digest, "
                f"size, metadata, fields FROM {old}_documents"
            )
            write_turned(run, keys, of_copy(vectors, copy))
            run(
                f"INSERT INTO {new}_sentences SELECT s.key + {copy * sentences}, "
                f"document + {copy * documents}, place, start, stop, n_tokens, passage_start, passage_end, "
                f"random(0, {LOTTERY - 1}), text, above, terms, turned.vector, counted "
                f"FROM {old}_sentences s JOIN turned USING (key) ORDER BY 1"
            )

        for copy in range(times):
            spent("write copies", lambda copy=copy: write(copy))
        query = (
            f"INSERT INTO {new}_postings SELECT term, weight, sentence + copy * {sentences}, "
            f"document + copy * {documents} "
            f"FROM {old}_postings, generate_series(0, {times - 1}) AS copy ORDER BY 1, 3"
        )
        spent("write copies", lambda: run(query))
        for table in (f"{new}_documents", f"{new}_sentences"):
            run(f"SELECT setval(pg_get_serial_sequence('{table}', 'key'), (SELECT max(key) FROM {table}))")


def write_turned(run: Any, keys: list[int], vectors: FloatArray) -> None:
    """Fill the temporary table. keys: of the sentences; vectors: those of this copy."""
    run("TRUNCATE turned")
    with run.__self__.cursor().copy("COPY turned FROM STDIN (FORMAT BINARY)") as rows:
        rows.set_types(("int8", "halfvec"))
        for key, vector in zip(keys, vectors, strict=True):
            rows.write_row((key, HalfVector(vector)))


def of_copy(vectors: FloatArray, copy: int) -> FloatArray:
    """The vectors of a copy; the first has them as they are."""
    return turned(vectors, np.random.default_rng(copy)) if copy else vectors
