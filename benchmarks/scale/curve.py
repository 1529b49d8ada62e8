"""What a search costs as the collection grows: our indexes, and the stores in memory of both frameworks.

    python -m benchmarks.scale.curve [--sizes 1000,10000,100000,1000000] [--queries 20]

Each way and size has a process of its own. Sentences, words and vectors are made, as in
`benchmarks.retrieval.scale`, and nothing is encoded: encoding a text costs the same at every size, as does
all that follows the search. CPU time is that of the process with all its threads; memory is its peak, with
making the rows. The frameworks' stores keep vectors as lists of Python numbers and are left out above --most.
"""

import json
import os
import subprocess
import sys
import time
from argparse import Namespace
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks import record
from benchmarks.retrieval.scale import DIMENSION, TOP_K, Rows, made, made_rows
from precise_rag.evaluation.report.tables import format_markdown
from precise_rag.evaluation.runs.environment import peak_mb
from precise_rag.types import FloatArray

Search = Callable[[str, FloatArray], object]


def main() -> None:
    parser = record.new_parser(__spec__.name, __doc__, data=False)
    parser.add_argument("--sizes", default="1000,10000,100000,1000000", help="sentences (%(default)s)")
    parser.add_argument("--ways", default=",".join(WAYS), help="(%(default)s)")
    parser.add_argument("--most", type=int, default=100_000, help="of a framework's store (%(default)s)")
    parser.add_argument("--queries", type=int, default=20, help="(%(default)s)")
    parser.add_argument("--one", nargs=2, metavar=("WAY", "SIZE"), help="measure this and print JSON")
    args = parser.parse_args()
    if args.one:
        way, size = args.one
        print(json.dumps(measure(way, int(size), args.queries)))
        return
    load, found = round(os.getloadavg()[0], 1), []
    for size in map(int, args.sizes.split(",")):
        for way in args.ways.split(","):
            if size <= args.most or way in OURS:
                command = [sys.executable, "-m", __spec__.name, "--one", way, str(size)]
                command += ["--queries", str(args.queries)]
                done = subprocess.run(command, check=True, capture_output=True, text=True)
                found.append(json.loads(done.stdout.splitlines()[-1]))
                save(args, found, load)


def save(args: Namespace, found: list[dict[str, Any]], load: float) -> None:
    header = list(found[0])
    rows = sorted(found, key=lambda row: list(WAYS).index(row["way"]))
    body = [[f"{row[c]:,}" if isinstance(row[c], int) else str(row[c]) for c in header] for row in rows]
    text = ["# Cost of a search as the collection grows", _LEGEND.format(top_k=TOP_K, load=load)]
    made = record.made(__spec__.name, args, **{"load at the beginning": load})
    record.save(
        "scale", "curve", made, "\n\n".join([*text, format_markdown(header, body)]), {"results": found}
    )


_LEGEND = (
    "The best {top_k} sentences, one question at a time; building is without encoding. The load of the "
    "machine was {load} at the beginning; if that is not near 0, wall times are those of a busy machine."
)


def measure(way: str, size: int, n_queries: int) -> dict[str, Any]:
    """Build one way at one size, and ask it."""
    rows = made_rows(Namespace(sentences=size, dimension=DIMENSION, queries=n_queries))
    started = time.process_time()
    search = WAYS[way](rows)
    asked = list(zip(rows.queries, rows.vectors, strict=True))
    search(*asked[0])
    built = time.process_time() - started
    seconds, before = [], time.process_time()
    for query, vector in asked:
        began = time.perf_counter()
        search(query, vector)
        seconds.append(time.perf_counter() - began)
    cpu = (time.process_time() - before) / len(asked)
    p50, p95 = 1000 * np.percentile(seconds, [50, 95])
    return {
        "way": way,
        "sentences": size,
        "build, CPU s": round(built, 1),
        "CPU ms": round(1000 * cpu, 2),
        "p50 ms": round(p50, 2),
        "p95 ms": round(p95, 2),
        "peak MB": round(peak_mb()),
    }


def dense(rows: Rows) -> Search:
    index = made("exact", rows, None)
    return lambda query, vector: index.search(query, TOP_K, vector=vector)


def hybrid(rows: Rows) -> Search:
    index: Any = made("hybrid", rows, None)
    return lambda query, vector: index.search(query, TOP_K, vector=vector, returns="sentence")


def langchain(rows: Rows) -> Search:
    from langchain_core.embeddings import FakeEmbeddings
    from langchain_core.vectorstores import InMemoryVectorStore

    store = InMemoryVectorStore(FakeEmbeddings(size=DIMENSION))
    for number, (text, vector) in enumerate(zip(texts(rows), vectors(rows), strict=True)):
        store.store[f"{number}"] = {
            "id": f"{number}",
            "vector": vector.tolist(),
            "text": text,
            "metadata": {},
        }
    return lambda _, vector: store.similarity_search_by_vector(vector.tolist(), k=TOP_K)


def llamaindex(rows: Rows) -> Search:
    from llama_index.core.schema import TextNode
    from llama_index.core.vector_stores import SimpleVectorStore, VectorStoreQuery

    store = SimpleVectorStore()
    store.add(
        [
            TextNode(id_=f"{number}", text=text, embedding=vector.tolist())
            for number, (text, vector) in enumerate(zip(texts(rows), vectors(rows), strict=True))
        ]
    )
    return lambda _, vector: store.query(
        VectorStoreQuery(query_embedding=vector.tolist(), similarity_top_k=TOP_K)
    )


def vectors(rows: Rows) -> FloatArray:
    found: FloatArray = rows.collection.columns["vectors"]
    return found


def texts(rows: Rows) -> list[str]:
    """The words of each sentence."""
    words = rows.collection.columns["words.values"].reshape(len(rows.collection), -1)
    return [" ".join(f"w{word}" for word in row) for row in words.tolist()]


OURS = {"DenseIndex": dense, "HybridIndex": hybrid}
WAYS: dict[str, Callable[[Rows], Search]] = {
    **OURS,
    "LangChain InMemoryVectorStore": langchain,
    "LlamaIndex SimpleVectorStore": llamaindex,
}

if __name__ == "__main__":
    main()
