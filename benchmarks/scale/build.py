"""Build a large collection in a folder and in databases, for `benchmarks.scale.stores` to measure.

    python -m benchmarks.scale.build --data DIR --work W [--sentences 1000000] [--stores folder,lance]

Text and vectors: see `benchmarks.scale.collection`. Rows are read once for all databases, so the seconds of
"read" belong to each of them; nothing but the real sentences is encoded. Seconds of CPU are those of this
process, and for PostgreSQL also those of its server, which must run on this machine; its address is in
PRECISE_POSTGRES.
"""

import json
import os
import time
from argparse import ArgumentParser
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import record
from benchmarks.scale.collection import LargeCollection
from precise_rag.evaluation import load_development_set
from precise_rag.index import DatabaseIndex, HybridIndex
from precise_rag.index.databases.encoding import rows_of_documents
from precise_rag.index.databases.engine import Engine
from precise_rag.index.databases.postgres import PostgresEngine
from precise_rag.types import FloatArray

STORES = "folder,lance,postgres"


def main() -> None:
    args = large_parser(__spec__.name, __doc__, 1_000_000, STORES).parse_args()
    stores = args.stores.split(",")
    collection = LargeCollection(args.data, record.cached_encoder(args))
    if "folder" in stores:
        folder(args, collection)
    databases = [store for store in stores if store != "folder"]
    if databases:
        rows(args, collection, databases)


def folder(args: Any, collection: LargeCollection) -> None:
    """Build the folder index."""
    index, spent = HybridIndex(collection), Spent()
    for batch in collection.batches(args.sentences):
        spent("add", lambda batch=batch: index.add(batch))
    path = place(args, "folder")
    spent("prepare and save", lambda: index.save(path))
    note(args, "folder", {"sentences": len(index), **spent.figures(), "size MB": size_of(Path(path))})


def rows(args: Any, collection: LargeCollection, stores: list[str]) -> None:
    """Build collections in databases, from rows that are read once."""
    indexes = {store: DatabaseIndex(place(args, store), collection) for store in stores}
    reading = Spent()
    spent = {store: Spent(index.engine) for store, index in indexes.items()}
    for number, batch in enumerate(collection.batches(args.sentences)):
        if not number:
            for index in indexes.values():
                index.add(batch[:1])
        settings = next(iter(indexes.values())).settings
        read = reading("read", lambda b=batch, s=settings: rows_of_documents(b, collection, s, {}, False))
        for store, index in indexes.items():
            spent[store]("write", lambda index=index, read=read: index.engine.write(read))
    for store, index in indexes.items():
        spent[store]("optimize", index.optimize)
        figures = {**reading.figures(), **spent[store].figures()}
        note(args, store, {"sentences": len(index), **figures, "size MB": stored_size(index.engine)})


def place(args: Any, store: str) -> str:
    """Where a store of this size is."""
    size = args.sentences
    if store == "postgres":
        server = os.environ["PRECISE_POSTGRES"]
        return f"{server}{'&' if '?' in server else '?'}collection=scale_{size}"
    suffix = ".lance" if store == "lance" else ""
    return str(args.work / f"{store}-{size}{suffix}")


def large_parser(module: str, doc: str, sentences: int, stores: str) -> ArgumentParser:
    """Parser of the commands about a large collection."""
    parser = record.new_parser(module, doc)
    parser.add_argument("--sentences", type=int, default=sentences, help="about (%(default)s)")
    parser.add_argument("--stores", default=stores, help="(%(default)s)")
    parser.add_argument("--work", type=Path, required=True, help="folder of the stores")
    parser.add_argument("--vectors", type=Path, help="vector cache (default: in the work folder)")
    return parser


def queries(args: Any) -> list[tuple[str, FloatArray]]:
    """Questions of SQuAD with their vectors."""
    asked = [q.text for q in load_development_set("squad", args.data).sample(args.queries).questions]
    return list(zip(asked, record.cached_encoder(args).encode_queries(asked), strict=True))


def note(args: Any, store: str, figures: dict[str, Any], name: str = "figures") -> None:
    """Keep the figures of a store in the work folder, with those that are there."""
    path = args.work / f"{name}-{args.sentences}.json"
    known = json.loads(path.read_text()) if path.exists() else {}
    known.setdefault(store, {}).update(figures)
    path.write_text(json.dumps(known, indent=1))
    print(store, figures, flush=True)


def stored_size(engine: Engine) -> int:
    """Megabytes of a collection on disk."""
    if not isinstance(engine, PostgresEngine):
        return size_of(Path(engine.location))
    with engine._connections.transaction() as run:
        query = (
            "SELECT sum(pg_total_relation_size(oid)) FROM pg_class WHERE relkind = 'r' AND relname LIKE %s"
        )
        return round(float(run(query, [f"{engine._c}\\_%"]).fetchone()[0]) / 1e6)


def size_of(path: Path) -> int:
    return round(sum(file.stat().st_size for file in path.rglob("*") if file.is_file()) / 1e6)


class Spent:
    """Seconds of CPU by name, of this process and of the server of an engine."""

    def __init__(self, engine: Engine | None = None) -> None:
        self._clocks = {"CPU s": time.process_time}
        if isinstance(engine, PostgresEngine):
            with engine._connections.transaction() as run:
                folder = run("SHOW data_directory").fetchone()[0]
            server = int(Path(folder, "postmaster.pid").read_text().split()[0])
            self._clocks["server CPU s"] = lambda: cpu_of_server(server)
        self._spent: dict[str, float] = {}

    def __call__(self, name: str, call: Callable[[], Any]) -> Any:
        before = {clock: read() for clock, read in self._clocks.items()}
        value = call()
        for clock, read in self._clocks.items():
            key = f"{name}, {clock}"
            self._spent[key] = self._spent.get(key, 0) + read() - before[clock]
        return value

    def figures(self) -> dict[str, float]:
        return {name: round(seconds, 1) for name, seconds in self._spent.items()}


def cpu_of_server(process: int) -> float:
    """Seconds of CPU of a process, of its children, and of those that have ended."""
    ticks = 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        if process in (int(path.parent.name), int(fields[1])):
            ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
