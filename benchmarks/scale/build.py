"""Build a large collection in a folder and in databases, for `benchmarks.scale.stores` to measure.

    python -m benchmarks.scale.build --data DIR --work W [--sentences 1000000] [--stores folder,lance]

Text and vectors: see `benchmarks.scale.collection`. Rows are read once for all databases, so the seconds of
"read" belong to each of them; nothing is encoded. A million is the collection of 100,000 sentences ten times,
with copied rows: in LanceDB of the one that was built before, in PostgreSQL not at all. Seconds of CPU are
those of this process: a PostgreSQL server has its own. PostgreSQL is in PRECISE_POSTGRES.
"""

import json
import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as arrow
from pyarrow import compute

from benchmarks import record
from benchmarks.scale.collection import DISTINCT, LargeCollection, turned
from precise_rag.index import DatabaseIndex, HybridIndex
from precise_rag.index.arrays.collection import Collection
from precise_rag.index.databases.lance import LanceEngine
from precise_rag.index.databases.lance.rows import LOTTERY, plain
from precise_rag.index.databases.reading import read_documents
from precise_rag.index.segments import Part, Segment

STORES = "folder,lance,postgres"


def main() -> None:
    parser = record.new_parser(__spec__.name, __doc__)
    parser.add_argument("--sentences", type=int, default=1_000_000, help="about (%(default)s)")
    parser.add_argument("--stores", default=STORES)
    parser.add_argument("--work", type=Path, required=True, help="folder of the stores")
    parser.add_argument("--vectors", type=Path, help="vector cache (default: in the work folder)")
    args = parser.parse_args()
    stores = args.stores.split(",")
    if "folder" in stores or args.sentences <= DISTINCT:
        collection = LargeCollection(args.data, record.cached_encoder(args))
    if "folder" in stores:
        folder(args, collection)
    if args.sentences > DISTINCT:
        if "lance" in stores:
            repeat_rows(args)
    elif databases := [store for store in stores if store != "folder"]:
        rows(args, collection, databases)


def folder(args: Any, collection: LargeCollection) -> None:
    """Build the folder index."""
    index, spent = HybridIndex(collection), Spent()
    for batch in collection.batches(min(args.sentences, DISTINCT)):
        spent("add", lambda batch=batch: index.add(batch))
    if args.sentences > DISTINCT:
        repeat(index, args.sentences // DISTINCT)
    path = place(args, "folder")
    spent("prepare and save", lambda: index.save(path))
    note(args, "folder", {"sentences": len(index), **spent.figures(), "size MB": size_of(Path(path))})


def rows(args: Any, collection: LargeCollection, stores: list[str]) -> None:
    """Build collections in databases, from rows that are read once."""
    indexes = {store: DatabaseIndex(place(args, store), collection) for store in stores}
    reading, spent = Spent(), {store: Spent() for store in stores}
    for number, batch in enumerate(collection.batches(args.sentences)):
        if not number:
            for index in indexes.values():
                index.add(batch[:1])
        settings = next(iter(indexes.values())).settings
        read = reading("read", lambda b=batch, s=settings: read_documents(b, collection, s, {}, False))
        for store, index in indexes.items():
            spent[store]("write", lambda index=index, read=read: index.engine.write(read))
    for store, index in indexes.items():
        spent[store]("optimize", index.optimize)
        figures = {"sentences": len(index), **reading.figures(), **spent[store].figures()}
        if store == "lance":
            figures["size MB"] = size_of(Path(place(args, store)))
        note(args, store, figures)


def repeat_rows(args: Any) -> None:
    """Repeat the rows of the collection of 100,000 sentences in LanceDB, which was built before."""
    once, spent = LanceEngine(args.work / f"lance-{DISTINCT}.lance"), Spent()
    made = once.settings()
    assert made is not None
    path = Path(place(args, "lance"))
    engine = LanceEngine(path)
    table = once._open("rows").to_arrow()
    n_rows, dimension = len(table), table["vector"].type.list_size
    vectors = table["vector"].combine_chunks().flatten().to_numpy().reshape(n_rows, dimension)
    engine.create(made, dimension)
    terms, totals = once._present_frequencies(n_rows)
    times = args.sentences // DISTINCT
    for number in range(times):
        rows = turned(vectors, np.random.default_rng(number)) if number else vectors
        columns = {name: table[name] for name in table.column_names}
        for name in ("id", "doc_id"):
            columns[name] = compute.binary_join_element_wise(f"{number}", columns[name], "-")
        columns["lottery"] = np.random.default_rng(number).integers(0, LOTTERY, n_rows).astype(np.int32)
        columns["scored"] = arrow.array(rescored(table["scored"].to_pylist(), rows), arrow.binary())
        columns["vector"] = arrow.FixedSizeListArray.from_arrays(arrow.array(rows.ravel()), dimension)
        copy = arrow.table(columns).cast(plain(table.schema))
        spent("write copies", lambda copy=copy: engine._open("rows").add(copy))
    counts = arrow.table({"term": terms.astype(np.int32), "change": times * totals})
    engine._open("frequencies").add(counts)
    spent("optimize", engine.optimize)
    with engine.view() as view:
        figures = {"sentences": view.count(), **spent.figures(), "size MB": size_of(path)}
    note(args, "lance", figures)


def rescored(column: list[bytes], vectors: np.ndarray) -> list[bytes]:
    """The values of the column "scored" with other vectors; see `precise_rag.index.databases.lance.rows`."""
    found = []
    for value, vector in zip(column, vectors.astype("<f2"), strict=True):
        at = 8 + 4 * int.from_bytes(value[4:8], "little")
        found.append(value and value[:at] + vector.tobytes() + value[at + vector.nbytes :])
    return found


def repeat(index: HybridIndex, times: int) -> None:
    """Repeat all documents of an index under other ids, with turned vectors, as one segment."""
    index.compact()
    segment = index._parts[0].segment
    once, rng = segment.collection, np.random.default_rng(0)
    columns = {
        name: np.tile(column, (times,) + (1,) * (column.ndim - 1)) for name, column in once.columns.items()
    }
    for first in range(len(once), len(columns["vectors"]), len(once)):
        rows = slice(first, first + len(once))
        columns["vectors"][rows] = turned(columns["vectors"][rows], rng)
    documents = {
        f"{copy}-{name}": replace(document, id=f"{copy}-{name}")
        for copy in range(times)
        for name, document in once.documents.items()
    }
    offsets = np.concatenate([[0], np.cumsum(np.tile(np.diff(once.offsets), times))])
    index._parts = (Part(Segment(Collection(documents, offsets, columns), segment.words)),)


def place(args: Any, store: str) -> str:
    """Where a store of this size is."""
    if store == "postgres":
        server = os.environ["PRECISE_POSTGRES"]
        return f"{server}{'&' if '?' in server else '?'}collection=scale_{args.sentences}"
    suffix = ".lance" if store == "lance" else ""
    return str(args.work / f"{store}-{args.sentences}{suffix}")


def note(args: Any, store: str, figures: dict[str, Any]) -> None:
    """Keep the figures of a store in the work folder, with those that are there."""
    path = args.work / f"figures-{args.sentences}.json"
    known = json.loads(path.read_text()) if path.exists() else {}
    known.setdefault(store, {}).update(figures)
    path.write_text(json.dumps(known, indent=1))
    print(store, figures, flush=True)


def size_of(path: Path) -> int:
    return round(sum(file.stat().st_size for file in path.rglob("*") if file.is_file()) / 1e6)


class Spent:
    """Seconds of CPU by name."""

    def __init__(self) -> None:
        self._cpu: dict[str, float] = {}

    def __call__(self, name: str, call: Callable[[], Any]) -> Any:
        cpu = time.process_time()
        value = call()
        self._cpu[name] = self._cpu.get(name, 0) + time.process_time() - cpu
        return value

    def figures(self) -> dict[str, float]:
        return {f"{name}, CPU s": round(cpu, 1) for name, cpu in self._cpu.items()}


if __name__ == "__main__":
    main()
