"""Recall of evidence at token budgets: DatabaseIndex against HybridIndex, exact and with approximate indexes.

    python -m benchmarks.scale.recall --data DIR [--sets squad] [--frameworks]

Rows are in LanceDB, and in PostgreSQL if the environment variable PRECISE_POSTGRES has its address. Searches
are exact until `optimize`, which here builds the approximate index of the vectors from --indexed rows on;
collections of this size have none by default. With --frameworks also the frameworks' own stores, with the
same sentences and their plain vectors (`benchmarks.scale.frameworks`).
"""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import record
from benchmarks.sent import recall_rows, recalls
from precise_rag.evaluation import Dataset, load_development_set
from precise_rag.evaluation.units import Unit
from precise_rag.index import DatabaseIndex, HybridIndex
from precise_rag.index.databases.lance import engine as lance_engine
from precise_rag.index.databases.postgres import engine as postgres_engine
from precise_rag.protocols import Encoder
from precise_rag.sentences.tables import build_tables

SETS = "squad,fairytaleqa,covidqa,qmsum,hotpotqa,nq,rgb,xquad,cuad"
"""Those whose questions have marked evidence; QASPER's and QuALITY's have not."""


def main() -> None:
    parser = record.parse_arguments(__spec__.name, __doc__, SETS, sample=200)
    parser.add_argument("--indexed", type=int, default=1_000, help="rows (%(default)s)")
    parser.add_argument("--frameworks", action="store_true")
    args = parser.parse_args()
    lance_engine._INDEXED_FROM = postgres_engine._INDEXED_FROM = args.indexed
    encoder = record.cached_encoder(args)
    rows: list[dict[str, Any]] = []
    for name in args.sets.split(","):
        dataset = load_development_set(name, args.data).with_evidence().sample(args.sample, args.seed)
        found = {"HybridIndex": recalls(dataset, HybridIndex.build(dataset.documents, encoder).search)}
        found |= by_databases(dataset, encoder, name)
        if args.frameworks:
            found |= by_frameworks(dataset, encoder, name)
        rows += recall_rows(name, found)
        print(*rows[-len(found) :], sep="\n", flush=True)
    stem = "recall-frameworks" if args.frameworks else "recall"
    if args.sets != SETS and not args.frameworks:
        stem += f"-{args.sets.replace(',', '-').replace('/', '-')}"
    title = "Recall of evidence (%) at token budgets: rows in a database against HybridIndex"
    record.save_rows(__spec__.name, args, f"scale/{stem}", title, rows)


def by_databases(dataset: Dataset, encoder: Encoder, name: str) -> dict[str, np.ndarray]:
    """The recalls of our rows in databases, exact and with an approximate index."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        places = {"LanceDB": str(Path(folder) / "rows.lance")}
        if server := os.environ.get("PRECISE_POSTGRES"):
            places["PostgreSQL"] = f"{server}{'&' if '?' in server else '?'}collection=recall_{name}"
        for engine, location in places.items():
            index = DatabaseIndex.build(dataset.documents, encoder, location=location)
            found[engine] = recalls(dataset, index.search)
            index.optimize()
            found[f"{engine}, approximate"] = recalls(dataset, index.search)
            index.delete(index.document_ids)
            index.close()
    return found


def by_frameworks(dataset: Dataset, encoder: Encoder, name: str) -> dict[str, np.ndarray]:
    """The recalls of the frameworks' own stores, filled with the sentences of a set."""
    from benchmarks.scale.frameworks import STORES, Row, opened

    spans, rows = {}, []
    for document, table in zip(dataset.documents, build_tables(dataset.documents, encoder), strict=True):
        for (start, end), vector in zip(table.spans, table.vectors, strict=True):
            identifier = f"s{len(rows)}"
            spans[identifier] = Unit(document.id, int(start), int(end), document.text[start:end])
            rows.append(Row(identifier, document.text[start:end], vector))
    asked = [question.text for question in dataset.questions]
    vectors = dict(zip(asked, encoder.encode_queries(asked), strict=True))

    def searches() -> Iterator[tuple[str, Any]]:
        for which in STORES:
            if not which.endswith("postgres") or "PRECISE_POSTGRES" in os.environ:
                store = opened(Path(folder), which, f"recall_{name}")
                if not store.count():
                    store.fill(rows)
                for kind, search in store.searches.items():
                    yield f"{which}, {kind}", search

    with tempfile.TemporaryDirectory() as folder:
        return {
            system: recalls(dataset, lambda q, k, search=search: [spans[i] for i in search(q, vectors[q], k)])
            for system, search in searches()
        }


if __name__ == "__main__":
    main()
