"""One change to a folder index of a given size, and exact searches with and without the first pass in int8.

    python -m benchmarks.scale.changes [--sentences 80000]

Vectors are made around centres and words follow Zipf's law (`benchmarks.retrieval.scale`): what a change
costs does not depend on them. Seconds of CPU are given beside those of the clock, since other work on the
machine does not count in them. A search is timed with one thread.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import record
from benchmarks.retrieval.scale import Rows, made_rows
from precise_rag.evaluation.report.tables import format_markdown
from precise_rag.index import HybridIndex
from precise_rag.index.arrays import rough
from precise_rag.index.arrays.words import Vocabulary
from precise_rag.index.rows.segments import Part, Segment
from precise_rag.testing import HashEncoder
from precise_rag.types import Document

TOP_K, ADDED, DIMENSION = 10, 100, 384


def main() -> None:
    parser = record.new_parser(__spec__.name, __doc__, data=False)
    parser.add_argument("--sentences", type=int, default=80_000)
    parser.add_argument("--queries", type=int, default=20)
    args = parser.parse_args()
    load = os.getloadavg()[0]
    rows = made_rows(argparse.Namespace(**vars(args), dimension=DIMENSION))
    least, rough.LEAST_ROWS = rough.LEAST_ROWS, args.sentences + 1
    times: dict[str, list[tuple[float, float]]] = {}
    plain = index_of(rows)
    expected = searches(times, "search, every vector in float32", plain, rows)
    rough.LEAST_ROWS = least
    index = index_of(rows)
    found = searches(times, "search, first pass in int8", index, rows)
    same = np.mean([len(a & b) / len(a) for a, b in zip(expected, found, strict=True)])
    with tempfile.TemporaryDirectory() as folder:
        changes(times, index, Path(folder) / "index", rows)
    lines = [
        [name, *(f"{1000 * seconds:,.1f}" for seconds in (np.median(clock), np.median(cpu), max(cpu)))]
        for name, (clock, cpu) in ((name, zip(*pairs, strict=True)) for name, pairs in times.items())
    ]
    made = record.made(__spec__.name, args, **{"load at the beginning": round(load, 1)})
    header = ["ms", "median", "median of CPU", "largest of CPU"]
    body = format_markdown(header, lines) + f"\n\nSame best {TOP_K} by both searches: {100 * same:.1f} %."
    title = f"# One change to a folder of {args.sentences:,} sentences (load {load:.0f})\n\n"
    data = {"ms": {name: figures for name, *figures in lines}, "same": float(same)}
    print(record.save("scale", f"changes-{args.sentences}", made, title + body, data))


def index_of(rows: Rows) -> HybridIndex:
    """An index of rows that are encoded, as one segment."""
    index = HybridIndex(HashEncoder(DIMENSION), headings=False)
    index._rows.parts = (Part(Segment(rows.collection, Vocabulary(index.scheme.stop_words, rows.words))),)
    index.search(rows.queries[0], TOP_K, vector=rows.vectors[0])
    return index


def searches(times: Any, name: str, index: HybridIndex, rows: Rows) -> list[set[str]]:
    """Time a search for each query. Returns what each finds."""
    found = []
    for query, vector in zip(rows.queries, rows.vectors, strict=True):
        candidates = timed(
            times,
            name,
            lambda query=query, vector=vector: index.search(query, TOP_K, vector=vector, returns="sentence"),
        )
        found.append({candidate.id for candidate in candidates})
    return found


def changes(times: Any, index: HybridIndex, path: Path, rows: Rows) -> None:
    """Time additions and deletions, what the next search prepares, and saves."""
    timed(times, "first save", lambda: index.save(path))
    for i in range(ADDED):
        document = Document(f"new {i}", f"The quartz cat number {i} sleeps. It purrs. Dogs bark at it.")
        timed(times, "add one document", lambda document=document: index.add([document]))
        timed(times, "prepare the next search", index._rows.snapshot)
        if i % 10 == 0:
            timed(times, "save after it", lambda: index.save(path))
    for identifier in index.document_ids[:10]:
        timed(times, "delete one document", lambda identifier=identifier: index.delete([identifier]))
        timed(times, "prepare the next search", index._rows.snapshot)
        timed(times, "save after deleting", lambda: index.save(path))
    searches(times, "search after all that", index, rows)
    timed(times, "load, checking shapes", lambda: HybridIndex.load(path, index.encoder, verify="shape"))


def timed(times: Any, name: str, call: Callable[[], Any]) -> Any:
    """Run a call and keep its seconds by the clock and of CPU."""
    clock, cpu = time.perf_counter(), time.process_time()
    value = call()
    times.setdefault(name, []).append((time.perf_counter() - clock, time.process_time() - cpu))
    return value


if __name__ == "__main__":
    main()
