"""Build time, memory, latency and recall of the indexes at a large size.

    python -m benchmarks.retrieval.scale [--sentences 1000000] [--kinds exact,int8,IVF1024+SQ8@nprobe=16]
    python -m benchmarks.retrieval.scale --sentences 20000000 --device cuda --kinds exact,float16

The vectors are made around random centres, as sentences lie around topics; `benchmarks.scale.stores` has
real text. Recall@10 is the share of the ten best sentences that the same search by numpy in float32
finds. --device lets torch multiply there.
"""

import argparse
import json
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from benchmarks import record
from benchmarks.timing import Searched, percentiles, searched
from precise_rag.evaluation.runs.environment import peak_mb
from precise_rag.index import DenseIndex, DocumentIndex, HybridIndex, SentenceContextIndex
from precise_rag.index.arrays.collection import Collection
from precise_rag.index.arrays.vectors import vector_columns
from precise_rag.index.arrays.words import Vocabulary
from precise_rag.index.rows.segments import Part, Segment
from precise_rag.testing import HashEncoder
from precise_rag.types import Document, FloatArray

TOP_K, DIMENSION = 10, 384
PER_DOCUMENT, PER_PASSAGE, WORDS = 200, 5, 20
KINDS = (
    "exact,float16,int8,IVF1024+SQ8@nprobe=16,IVF1024+SQ8@nprobe=64,IVF1024+PQ48@nprobe=64,HNSW32@efSearch=128,"
    "context,context-float16,context-int8,hybrid,hybrid-float16,hybrid-int8"
)
FAMILIES: dict[str, type[DocumentIndex]] = {
    "exact": DenseIndex,
    "context": SentenceContextIndex,
    "hybrid": HybridIndex,
}


class Rows(NamedTuple):
    """The columns of a HybridIndex in float32, from which an index of any kind is made, and questions."""

    collection: Collection
    words: list[str]
    queries: list[str]
    vectors: FloatArray


def main() -> None:
    parser = record.new_parser(__spec__.name, __doc__, data=False)
    parser.add_argument("--sentences", type=int, default=1_000_000, help="at least (%(default)s)")
    parser.add_argument("--dimension", type=int, default=DIMENSION, help="of made vectors (%(default)s)")
    parser.add_argument("--queries", type=int, default=50)
    parser.add_argument("--kinds", default=KINDS, help="faiss: factory@search (%(default)s)")
    parser.add_argument("--device", help="torch's, as cuda; numpy if not given")
    args = parser.parse_args()
    rows = made_rows(args)
    references: dict[str, list[set[str]]] = {}
    measured = []
    for kind in args.kinds.split(","):
        family = kind.partition("-")[0] if kind.partition("-")[0] in FAMILIES else "exact"
        if family not in references:
            references[family] = best(made(family, rows, None), rows).found
        measured.append({"kind": kind, **measure(kind, rows, args.device, references[family])})
        print(json.dumps(measured[-1]), flush=True)
        save(args, rows, measured)


def measure(kind: str, rows: Rows, device: str | None, expected: list[set[str]]) -> dict[str, Any]:
    started = time.perf_counter()
    index = made(kind, rows, device)
    index.search(rows.queries[0], TOP_K, vector=rows.vectors[0])
    built = time.perf_counter() - started
    found, seconds, _ = best(index, rows)
    hits = sum(len(a & b) for a, b in zip(found, expected, strict=True))
    return {
        "build s": round(built, 1),
        "vectors MB": round(index._rows.parts[0].segment.collection.columns["vectors"].nbytes / 1e6),
        "peak memory MB": round(peak_mb()),
        **percentiles(seconds),
        "recall@10": round(hits / (TOP_K * len(found)), 3),
    }


def best(index: Any, rows: Rows) -> Searched:
    """The ids that each query finds, and its seconds."""
    options = {"returns": "sentence"} if isinstance(index, HybridIndex) else {}
    pairs = list(zip(rows.queries, rows.vectors, strict=True))
    return searched(lambda query, vector: index.search(query, TOP_K, vector=vector, **options), pairs)


def made(kind: str, rows: Rows, device: str | None) -> DocumentIndex:
    """An index of the kind from encoded rows: the part of `build` after encoding."""
    encoder = HashEncoder(rows.vectors.shape[1])
    family, _, precision = kind.partition("-")
    if kind in ("float16", "int8"):
        family, precision = "exact", kind
    if family in FAMILIES:
        backend = f"torch:{device}" if device else "numpy"
        index = FAMILIES[family](encoder, precision=precision or "float32", backend=backend)
    else:
        index = DenseIndex(encoder, backend=f"faiss:{kind.replace('+', ',')}")
    wanted = {"spans", "n_tokens"} | {
        name
        for name in rows.collection.columns
        if (name == "passage_spans" and not isinstance(index, DenseIndex))
        or (name.startswith(("surroundings", "words.")) and isinstance(index, HybridIndex))
    }
    columns = {name: rows.collection.columns[name] for name in wanted}
    vectors = vector_columns(rows.collection.columns["vectors"], index.settings.precision)
    collection = Collection(rows.collection.documents, rows.collection.offsets, {**columns, **vectors})
    index._rows.parts = (Part(Segment(collection, Vocabulary(index.scheme.stop_words, rows.words))),)
    return index


def made_rows(args: argparse.Namespace) -> Rows:
    """Vectors around centres in documents of equal length, whose words follow Zipf's law."""
    random = np.random.default_rng(0)
    centres = random.normal(size=(1000, args.dimension)).astype(np.float32)
    n_documents = args.sentences // PER_DOCUMENT
    places = np.arange(PER_DOCUMENT)
    passages = places // PER_PASSAGE * PER_PASSAGE
    ranks = np.concatenate(list(_zipf(random, n_documents * PER_DOCUMENT * WORDS)))
    columns = {
        "spans": np.tile(np.stack([places, places + 1], axis=1), (n_documents, 1)),
        "n_tokens": np.full(n_documents * PER_DOCUMENT, 25),
        "vectors": around(centres, n_documents * PER_DOCUMENT, random),
        "passage_spans": np.tile(np.stack([passages, passages + PER_PASSAGE], axis=1), (n_documents, 1)),
        "surroundings": np.tile(places // (2 * PER_PASSAGE), n_documents),
        "words.values": ranks,
        "words.lengths": np.full(n_documents * PER_DOCUMENT, WORDS, dtype=np.int32),
    }
    documents = {str(i): Document(str(i), "x" * PER_DOCUMENT) for i in range(n_documents)}
    offsets = np.arange(n_documents + 1) * PER_DOCUMENT
    queries = [" ".join(f"w{word}" for word in random.integers(0, 4000, 4)) for _ in range(args.queries)]
    words = [f"w{i}" for i in range(50_000)]
    vectors = around(centres, args.queries, random)
    return Rows(Collection(documents, offsets, columns), words, queries, vectors)


def around(centres: FloatArray, n: int, random: np.random.Generator) -> FloatArray:
    """(n, d) unit vectors, each near one of the centres."""
    rows = centres[random.integers(0, len(centres), n)]
    for first in range(0, n, 65_536):  # noise in slices: float64 for all rows at once would not fit
        part = rows[first : first + 65_536]
        part += 0.8 * random.standard_normal(part.shape, dtype=np.float32)
        part /= np.linalg.norm(part, axis=1, keepdims=True)
    return rows


def _zipf(random: np.random.Generator, n: int) -> Iterator[np.ndarray]:
    for first in range(0, n, 1_000_000):
        ranks = np.minimum(random.zipf(1.2, min(1_000_000, n - first)), 50_000) - 1
        yield ranks.astype(np.int32)


def save(args: argparse.Namespace, rows: Rows, measured: list[dict[str, Any]]) -> None:
    title = (
        f"{len(rows.collection):,} sentences of {rows.vectors.shape[1]} dimensions: made vectors and words"
    )
    name = f"retrieval/scale-{args.sentences}"
    also = (
        "Build is without encoding; peak memory is the process's so far, with the float32 vectors in it; "
        "latency is one query at a time, without encoding the query; recall is of the same search by numpy "
        "in float32."
    )
    record.save_rows(__spec__.name, args, name, title, measured, form=",g", also=also)


if __name__ == "__main__":
    main()
