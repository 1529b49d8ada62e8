"""A large collection in the folder index and in databases: building, size, searches, one change, memory.

    python -m benchmarks.scale.stores --data DIR [--sentences 100000] [--stores folder,lance,postgres]

The text is that of the development sets and of Wikipedia, repeated with one word in eight changed until
there are enough sentences; vectors are made from the words (`HashEncoder`), so recall says how far an
approximate index is from exact search on such vectors, not on those of a network. PostgreSQL is measured
if the environment variable PRECISE_POSTGRES has its address. Seconds of CPU are those of our process;
times are of a machine that may do other work, which the load at the beginning tells.
"""

import argparse
import os
import random
import resource
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import record
from benchmarks.retrieval.real import real_documents
from precise_rag.evaluation import load_development_set
from precise_rag.evaluation.report.tables import format_markdown
from precise_rag.index import DatabaseIndex, HybridIndex
from precise_rag.testing import HashEncoder
from precise_rag.types import Document

TOP_K, CALLERS, BATCH, DIMENSION = 10, 10, 2_000, 384
NEW = Document("added", "The quartz heron stands on the zephyr pier. It waits for the tide.")
QUESTION = "Where does the quartz heron stand?"


def main() -> None:
    parser = record.new_parser(__spec__.name, __doc__)
    parser.add_argument("--sentences", type=int, default=100_000, help="at least (%(default)s)")
    parser.add_argument("--stores", default="folder,lance,postgres")
    parser.add_argument("--queries", type=int, default=50)
    args = parser.parse_args()
    asked = load_development_set("squad", args.data).sample(args.queries)
    queries = [question.text for question in asked.questions]
    load = os.getloadavg()[0]
    documents = list(enough(args))
    expected: list[set[str]] = []
    measured: dict[str, dict[str, Any]] = {}
    for store in args.stores.split(","):
        if store == "postgres" and not os.environ.get("PRECISE_POSTGRES"):
            continue
        with tempfile.TemporaryDirectory() as folder:
            found, figures = measure(store, Path(folder), documents, queries)
        expected = expected or found
        same = np.mean([len(a & b) / len(a) for a, b in zip(expected, found, strict=True)])
        measured[store] = {**figures, "same best 10 as the first": round(float(same), 3)}
        print(store, measured[store], flush=True)
    save(args, measured, load)


def enough(args: argparse.Namespace) -> Iterator[Document]:
    """Real documents, repeated with changes; about 25 words make a sentence."""
    words_left = 25 * args.sentences
    for copy in count():
        chosen = random.Random(copy)
        for document in real_documents(args.data):
            words = document.text.split(" ")
            if copy:
                words = [chosen.choice(words) if chosen.random() < 1 / 8 else word for word in words]
            yield Document(f"{copy}-{document.id}", " ".join(words), {"copy": copy})
            words_left -= len(words)
            if words_left <= 0:
                return


def measure(
    store: str, folder: Path, documents: list[Document], queries: list[str]
) -> tuple[list[set[str]], dict[str, Any]]:
    """What each query finds, and the figures of one store."""
    encoder, path = HashEncoder(DIMENSION), folder / ("rows.lance" if store == "lance" else "rows")
    started = time.process_time()
    index = opened(store, path, encoder)
    for first in range(0, len(documents), BATCH):
        index.add(documents[first : first + BATCH])
    saved(index, path)
    figures: dict[str, Any] = {"sentences": len(index)}
    index.search(queries[0], TOP_K)
    saved(index, path)
    figures["build, CPU s"] = round(time.process_time() - started, 1)
    if store != "postgres":
        files = (file.stat().st_size for file in path.rglob("*") if file.is_file())
        figures["size MB"] = round(sum(files) / 1e6)
    found, cpu, alone = asked(index, queries)
    figures |= {"search, CPU ms": round(1000 * cpu / len(queries), 1), **percentiles("alone", alone)}
    for name, change in (("add", lambda: index.add([NEW])), ("delete", lambda: index.delete([NEW.id]))):
        figures[f"{name} and search, ms"] = timed(lambda change=change: (change(), index.search(QUESTION, 1)))
        figures[f"save after {name}, ms"] = timed(lambda: saved(index, path))
    figures |= percentiles(f"{CALLERS} callers and a writer", together(index, queries))
    figures["peak memory so far MB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    if isinstance(index, DatabaseIndex):
        if store == "postgres":
            index.delete(index.document_ids)
        index.close()
    return found, figures


def opened(store: str, path: Path, encoder: HashEncoder) -> HybridIndex | DatabaseIndex:
    if store == "folder":
        return HybridIndex(encoder)
    server = os.environ.get("PRECISE_POSTGRES", "")
    address = f"{server}{'&' if '?' in server else '?'}collection=scale_stores"
    return DatabaseIndex(address if store == "postgres" else path, encoder)


def saved(index: HybridIndex | DatabaseIndex, path: Path) -> None:
    if isinstance(index, HybridIndex):
        index.save(path)


def asked(index: Any, queries: list[str]) -> tuple[list[set[str]], float, list[float]]:
    """What each query finds, the seconds of CPU for all of them, and the seconds of each."""
    found, seconds, started = [], [], time.process_time()
    for query in queries:
        began = time.perf_counter()
        found.append({candidate.id for candidate in index.search(query, TOP_K)})
        seconds.append(time.perf_counter() - began)
    return found, time.process_time() - started, seconds


def together(index: Any, queries: list[str]) -> list[float]:
    """The seconds of each query of several callers at once, while a thread adds and deletes a document."""
    done = threading.Event()

    def write() -> None:
        while not done.is_set():
            index.add([NEW])
            index.delete([NEW.id])

    writer = threading.Thread(target=write)
    writer.start()
    try:
        with ThreadPoolExecutor(CALLERS) as pool:
            parts = pool.map(lambda _: asked(index, queries)[2], range(CALLERS))
            return [seconds for part in parts for seconds in part]
    finally:
        done.set()
        writer.join()


def timed(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return round(1000 * (time.perf_counter() - began), 1)


def percentiles(name: str, seconds: list[float]) -> dict[str, float]:
    return {f"{name}, p{q} ms": round(1000 * float(np.percentile(seconds, q)), 1) for q in (50, 95)}


def _cell(figure: float | None) -> str:
    return "" if figure is None else f"{figure:,}"


def save(args: argparse.Namespace, measured: dict[str, dict[str, Any]], load: float) -> None:
    names = list(measured)
    figures = dict.fromkeys(figure for store in names for figure in measured[store])
    rows = [[figure, *(_cell(measured[store].get(figure)) for store in names)] for figure in figures]
    made = record.made(__spec__.name, args, **{"load at the beginning": round(load, 1)})
    title = f"# {args.sentences:,} sentences in a folder and in databases (load {load:.0f})\n\n"
    table = format_markdown(["", *names], rows)
    print(record.save("scale", f"stores-{args.sentences}", made, title + table, {"stores": measured}))


if __name__ == "__main__":
    main()
