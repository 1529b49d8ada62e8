"""Build time, memory, latency and recall at a million sentences, with vectors made for the purpose.

    python -m benchmarks.retrieval.scale [--sentences 1000000] [--kinds exact,float16,int8,IVF1024+SQ8]

The vectors lie around random centres, as sentences lie around topics; neighbours of a query are as
hard to find as such data makes them. Recall@10 is against exact search over float32.
"""

import argparse
import json
import resource
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.papers.record import RESULTS
from precise_rag.evaluation.evaluate import circumstances
from precise_rag.index import DenseIndex, DocumentIndex, FaissIndex, HybridIndex, SentenceContextIndex
from precise_rag.index.collection import Collection, Columns
from precise_rag.index.vectors import vector_columns
from precise_rag.testing import HashEncoder
from precise_rag.types import Document, FloatArray

TOP_K = 10
PER_DOCUMENT, PER_PASSAGE, WORDS = 200, 5, 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sentences", type=int, default=1_000_000)
    parser.add_argument("--dimension", type=int, default=384)
    parser.add_argument("--queries", type=int, default=50)
    parser.add_argument("--kinds", default="exact,float16,int8,context,hybrid,IVF1024+SQ8")
    args = parser.parse_args()
    random = np.random.default_rng(0)
    centres = random.normal(size=(1000, args.dimension)).astype(np.float32)
    vectors = around(centres, args.sentences, random)
    queries = around(centres, args.queries, random)
    exact = [np.argsort(-(vectors @ query))[:TOP_K].tolist() for query in queries]
    rows = []
    for kind in args.kinds.split(","):
        rows.append({"kind": kind, **measure(kind, vectors, queries, exact)})
        print(json.dumps(rows[-1]), flush=True)
        save(args, rows)


def around(centres: FloatArray, n: int, random: np.random.Generator) -> FloatArray:
    """(n, d) unit vectors, each near one of the centres."""
    rows = centres[random.integers(0, len(centres), n)]
    for first in range(0, n, 65_536):  # noise in slices: float64 for all rows at once would not fit
        part = rows[first : first + 65_536]
        part += 0.8 * random.standard_normal(part.shape, dtype=np.float32)
        part /= np.linalg.norm(part, axis=1, keepdims=True)
    return rows


def measure(kind: str, vectors: FloatArray, queries: FloatArray, exact: list[list[int]]) -> dict[str, Any]:
    started = time.perf_counter()
    index = made(kind, vectors)
    index.search("", TOP_K, vector=queries[0])
    built = time.perf_counter() - started
    seconds, hits = [], 0
    for query, expected in zip(queries, exact, strict=True):
        began = time.perf_counter()
        found = index.search("w1 w20 w300 w4000", TOP_K, vector=query)
        seconds.append(time.perf_counter() - began)
        place = {c.doc_id: int(c.doc_id) * PER_DOCUMENT for c in found}
        hits += len({place[c.doc_id] + c.start for c in found} & set(expected))
    return {
        "build s": round(built, 1),
        "vectors MB": round(index._collection.columns["vectors"].nbytes / 1e6),
        "peak memory MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "p50 ms": round(1000 * float(np.percentile(seconds, 50)), 1),
        "p95 ms": round(1000 * float(np.percentile(seconds, 95)), 1),
        "recall@10": None if kind in ("context", "hybrid") else hits / (TOP_K * len(queries)),
    }


def made(kind: str, vectors: FloatArray) -> DocumentIndex:
    """An index of the kind around ready rows: what `build` does after encoding."""
    encoder = HashEncoder()
    kinds: dict[str, Any] = {
        "exact": lambda: DenseIndex(encoder),
        "float16": lambda: DenseIndex(encoder, precision="float16"),
        "int8": lambda: DenseIndex(encoder, precision="int8"),
        "context": lambda: SentenceContextIndex(encoder),
        "hybrid": lambda: HybridIndex(encoder),
    }
    index = (
        kinds[kind]()
        if kind in kinds
        else FaissIndex(
            encoder, factory=kind.replace("+", ","), search="nprobe=16" if kind.startswith("IVF") else ""
        )
    )
    documents = [Document(str(i), "x" * PER_DOCUMENT) for i in range(len(vectors) // PER_DOCUMENT)]
    index._collection = Collection().extended(documents, list(blocks(index, vectors)))
    return index


def blocks(index: DocumentIndex, vectors: FloatArray) -> Iterator[Columns]:
    random = np.random.default_rng(1)
    places = np.arange(PER_DOCUMENT)
    spans = np.stack([places, places + 1], axis=1)
    passages = np.stack(
        [places // PER_PASSAGE * PER_PASSAGE, (places // PER_PASSAGE + 1) * PER_PASSAGE], axis=1
    )
    if isinstance(index, HybridIndex):
        index._lexicon.columns([" ".join(f"w{i}" for i in range(50_000))])
    for first in range(0, len(vectors), PER_DOCUMENT):
        columns = {
            "spans": spans,
            "n_tokens": np.full(PER_DOCUMENT, 25),
            **vector_columns(vectors[first : first + PER_DOCUMENT], index.settings.precision),
        }
        if isinstance(index, SentenceContextIndex | HybridIndex):
            columns["passage_spans"] = passages
        if isinstance(index, HybridIndex):
            columns["surroundings"] = places // (2 * PER_PASSAGE)
            ranks = np.minimum(random.zipf(1.2, PER_DOCUMENT * WORDS), 50_000) - 1
            columns["words.values"] = ranks.astype(np.int32)
            columns["words.lengths"] = np.full(PER_DOCUMENT, WORDS, dtype=np.int32)
        yield columns


def save(args: argparse.Namespace, rows: list[dict[str, Any]]) -> None:
    """benchmarks/results/retrieval-scale-<sentences>-<date>.md"""
    made_by = circumstances(0)
    names = list(rows[0])
    lines = [
        f"# {args.sentences:,} sentences of {args.dimension} dimensions\n",
        f"`python -m benchmarks.retrieval.scale --sentences {args.sentences} --kinds {args.kinds}`, "
        f"{made_by['date']}: {made_by['machine']}, Python {made_by['python']}. Build is without encoding; "
        "peak memory is the process's so far, with the made vectors in it.\n",
        "| " + " | ".join(names) + " |",
        "|---" * len(names) + "|",
        *("| " + " | ".join("–" if row[n] is None else str(row[n]) for n in names) + " |" for row in rows),
    ]
    path = RESULTS / f"retrieval-scale-{args.sentences}-{made_by['date']}.md"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
