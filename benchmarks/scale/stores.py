"""A large collection in the folder index and in databases: searches, one change, callers, memory.

    python -m benchmarks.scale.build --data DIR --work W --sentences 1000000
    python -m benchmarks.scale.stores --data DIR --work W --sentences 1000000 [--stores folder,lance]

Stores are built before, see `benchmarks.scale.build`, and each is measured in a process of its own. Questions
are SQuAD's, and their vectors are known. "Same as exact" is the share of the ten best sentences that the same
search finds with every vector compared; the folder always compares all. Files are read once before, so that
the operating system has them in memory. While callers search, another process adds and deletes a document; of
the folder, a thread does. "faiss" is the folder with an approximate index, which its first search builds, and
is only searched. PostgreSQL is in PRECISE_POSTGRES.
"""

import argparse
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import record
from benchmarks.scale.build import large_parser, note, place, queries
from benchmarks.tables import table
from benchmarks.timing import Searched, percentiles, searched, timed
from precise_rag.evaluation.runs.environment import peak_mb
from precise_rag.index import DatabaseIndex, HybridIndex
from precise_rag.index.databases.lance import view as lance_view
from precise_rag.testing import HashEncoder
from precise_rag.types import Document, FloatArray

STORES = "folder,faiss,lance,postgres"
FAISS = "faiss:IVF1024,SQ8@nprobe=16"
TOP_K, CALLERS, EACH = 10, 10, 10
NEW = Document("added", "The quartz heron stands on the zephyr pier. It waits for the tide.", {"copy": -1})
ASKED = "Where does the quartz heron stand?"
FILTER = {"copy": 1}


class Encoder(HashEncoder):
    """Stands for the encoder of the collection: the vectors of the questions are known."""

    name = "varied"


def main() -> None:
    parser = large_parser(__spec__.name, __doc__, 1_000_000, STORES)
    parser.add_argument("--queries", type=int, default=50)
    parser.add_argument("--child", choices=("measure", "write"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child == "write":
        write(DatabaseIndex(place(args, args.stores), Encoder(384)))
    elif args.child:
        measure(args, args.stores)
    else:
        load = os.getloadavg()[0]
        for store in args.stores.split(","):
            if store != "postgres" or "PRECISE_POSTGRES" in os.environ:
                subprocess.run(child("measure", store), check=True)
        save(args, load)


def child(what: str, store: str) -> list[str]:
    return [sys.executable, "-m", __spec__.name, *sys.argv[1:], "--stores", store, "--child", what]


def measure(args: Any, store: str) -> None:
    """Measure one store and keep the figures."""
    pairs = queries(args)
    if store != "postgres":
        read_once(Path(kept_in(args, store)))
    before = peak_mb()
    started = time.process_time()
    index = opened(args, store)
    search(index, pairs[:1])
    figures = {"open and first search, CPU ms": round(1000 * (time.process_time() - started), 1)}
    search(index, pairs[1:5])
    found, alone, cpu = search(index, pairs)
    figures |= {"search, CPU ms": round(1000 * cpu / len(pairs), 1), **percentiles(alone, "alone")}
    figures |= percentiles(search(index, pairs, filter=FILTER).seconds, "filtered")
    if store != "faiss":
        figures |= changed(index, store, kept_in(args, store))
        figures |= percentiles(together(index, pairs, store), f"{CALLERS} callers and a writer")
    figures["memory of our process, MB"] = int(peak_mb() - before)
    if isinstance(index, DatabaseIndex):
        figures |= percentiles(search(index, pairs).seconds, "alone, after the writer")
        with exact(args, store) as compared:
            expected, slow, _ = search(compared, pairs)
        figures |= percentiles(slow, "every vector compared")
        figures[f"same best {TOP_K} as exact"] = share(expected, found)
    kept = args.work / f"found-{args.sentences}.json"
    known = json.loads(kept.read_text()) if kept.exists() else {}
    known[store] = [sorted(ids) for ids in found]
    kept.write_text(json.dumps(known))
    if "folder" in known:
        figures[f"same best {TOP_K} as the folder"] = share([set(ids) for ids in known["folder"]], found)
    note(args, store, figures)


def changed(index: Any, store: str, path: str) -> dict[str, float]:
    """Milliseconds until a new document is found, and until a deleted one is not."""
    figures = {}
    changes = (("add", lambda: index.add([NEW])), ("delete", lambda: index.delete([NEW.id])))
    for name, change in changes:
        took = timed(lambda change=change: (change(), index.search(ASKED, 1)))
        figures[f"{name} and search, ms"] = round(1000 * took.seconds, 1)
        if store == "folder":
            figures[f"save after {name}, ms"] = round(1000 * timed(lambda: index.save(path)).seconds, 1)
    return figures


def kept_in(args: Any, store: str) -> str:
    """Where a store is."""
    return place(args, "folder" if store == "faiss" else store)


def read_once(folder: Path) -> None:
    """Bring all files into the memory of the operating system."""
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                while file.read(2**20):
                    pass


def opened(args: Any, store: str) -> Any:
    if store in ("folder", "faiss"):
        backend = FAISS if store == "faiss" else "numpy"
        return HybridIndex.load(kept_in(args, store), Encoder(384), verify="shape", backend=backend)
    return DatabaseIndex(place(args, store), Encoder(384))


@contextmanager
def exact(args: Any, store: str) -> Iterator[DatabaseIndex]:
    """The collection, with searches that compare every vector."""
    if store == "postgres":
        options = "&options=-c%20enable_indexscan%3Doff"
        yield DatabaseIndex(place(args, store) + options, Encoder(384))
        return
    best = lance_view._best

    def compared(search: Any, score: str, *rest: Any) -> Any:
        return best(search.bypass_vector_index() if score == "_distance" else search, score, *rest)

    lance_view._best = compared
    try:
        yield DatabaseIndex(place(args, store), Encoder(384))
    finally:
        lance_view._best = best


def search(index: Any, pairs: list[tuple[str, FloatArray]], **options: Any) -> Searched:
    """What each query finds, and how long it takes."""
    options = {"returns": "sentence", **options}
    return searched(lambda query, vector: index.search(query, TOP_K, vector=vector, **options), pairs)


def share(expected: list[set[str]], found: list[set[str]]) -> float:
    pairs = zip(expected, found, strict=True)
    return round(float(np.mean([len(a & b) / max(len(a), 1) for a, b in pairs])), 3)


def together(index: Any, pairs: list[tuple[str, FloatArray]], store: str) -> list[float]:
    """The seconds of each query of several callers at once, beside a writer."""
    with writing(index, store), ThreadPoolExecutor(CALLERS) as pool:
        chosen = [(pairs[i:] + pairs[:i])[:EACH] for i in range(0, CALLERS * 4, 4)]
        return [
            seconds for part in pool.map(lambda own: search(index, own).seconds, chosen) for seconds in part
        ]


@contextmanager
def writing(index: Any, store: str) -> Iterator[None]:
    """Add and delete a document all the time, in another process; of a folder, in a thread."""
    if store != "folder":
        with subprocess.Popen(child("write", store), stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout is not None
            writer.stdout.readline()
            try:
                yield
            finally:
                writer.terminate()
        return
    done = threading.Event()
    thread = threading.Thread(target=write, args=(index, done.is_set))
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def write(index: Any, is_done: Callable[[], bool] = lambda: False) -> None:
    while not is_done():
        index.add([NEW])
        index.delete([NEW.id])
        if isinstance(index, DatabaseIndex):
            print("written", flush=True)


def save(args: argparse.Namespace, load: float) -> None:
    measured = json.loads((args.work / f"figures-{args.sentences}.json").read_text())
    names = [store for store in STORES.split(",") if store in measured]
    figures = dict.fromkeys(figure for store in names for figure in measured[store])
    rows = [{"": figure} | {store: measured[store].get(figure, "") for store in names} for figure in figures]
    made = record.made(__spec__.name, args, **{"load at the beginning": round(load, 1)})
    title = f"# {args.sentences:,} sentences in a folder and in databases (load {load:.0f})\n\n"
    record.save("scale", f"stores-{args.sentences}", made, title + table(rows, ",g"), {"stores": measured})


if __name__ == "__main__":
    main()
