"""Recall of evidence at token budgets: DatabaseIndex against HybridIndex, exact and with approximate indexes.

    python -m benchmarks.scale.recall --data DIR [--sets squad] [--frameworks]

Rows are in LanceDB, and in PostgreSQL if the environment variable PRECISE_POSTGRES has its address. Searches
are exact until `optimize`, which here builds the approximate index of the vectors from --indexed rows on;
collections of this size have none by default. With --frameworks also the frameworks' own stores, with the
same sentences and their plain vectors (`benchmarks.scale.frameworks`).
"""

import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import record
from precise_rag.evaluation import BUDGETS, Positions, compare_paired, load_development_set, score_evidence
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
    header = " | ".join(map(str, BUDGETS))
    lines = [f"| set (questions) | system | {header} |", "|---" * (len(BUDGETS) + 2) + "|"]
    means: dict[str, dict[str, list[float]]] = {}
    for name in args.sets.split(","):
        dataset = load_development_set(name, args.data).with_evidence().sample(args.sample, args.seed)
        corpus = Positions(dataset.documents)

        def recalls(index, dataset=dataset, corpus=corpus) -> np.ndarray:
            found = [score_evidence(corpus, index.search(q.text, 100), q.evidence) for q in dataset.questions]
            return 100 * np.array([score.recall for score in found])

        base = recalls(HybridIndex.build(dataset.documents, encoder))
        systems = {"HybridIndex": base}
        with tempfile.TemporaryDirectory() as folder:
            for engine, location in locations(Path(folder), name).items():
                rows = DatabaseIndex.build(dataset.documents, encoder, location=location)
                systems[engine] = recalls(rows)
                rows.optimize()
                systems[f"{engine}, approximate"] = recalls(rows)
                rows.delete(rows.document_ids)
                rows.close()
        if args.frameworks:
            systems |= by_frameworks(dataset, corpus, encoder, name)
        for system, values in systems.items():
            cells = [f"{mean:.1f}" for mean in values.mean(axis=0)]
            if system != "HybridIndex":
                gains = [compare_paired(values[:, j], base[:, j]).difference for j in range(len(BUDGETS))]
                cells = [
                    f"{cell} ({g.mean:+.1f} [{g.low:+.1f}, {g.high:+.1f}])"
                    for cell, g in zip(cells, gains, strict=True)
                ]
            lines.append(f"| {name} ({len(values)}) | {system} | {' | '.join(cells)} |")
            print(lines[-1], flush=True)
        means[name] = {system: values.mean(axis=0).round(2).tolist() for system, values in systems.items()}
    title = "# Recall of evidence (%) at token budgets: rows in a database against HybridIndex\n\n"
    made = record.made(__spec__.name, args)
    stem = "recall-frameworks" if args.frameworks else "recall"
    if args.sets != SETS and not args.frameworks:
        stem += f"-{args.sets.replace(',', '-').replace('/', '-')}"
    print(record.save("scale", stem, made, title + "\n".join(lines), {"recall": means}))


def by_frameworks(dataset: Any, corpus: Positions, encoder: Encoder, name: str) -> dict[str, np.ndarray]:
    """The recalls of the frameworks' own stores, filled with the sentences of a set."""
    from benchmarks.scale.frameworks import STORES, Row, opened

    spans, rows = {}, []
    tables = build_tables(dataset.documents, encoder)
    for document, table in zip(dataset.documents, tables, strict=True):
        for (start, end), vector in zip(table.spans, table.vectors, strict=True):
            identifier = f"s{len(rows)}"
            spans[identifier] = Unit(document.id, int(start), int(end), document.text[start:end])
            rows.append(Row(identifier, document.text[start:end], vector))
    asked = [question.text for question in dataset.questions]
    pairs = list(zip(dataset.questions, encoder.encode_queries(asked), strict=True))
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for which in STORES:
            if which.endswith("postgres") and "PRECISE_POSTGRES" not in os.environ:
                continue
            store = opened(Path(folder), which, f"recall_{name}")
            if not store.count():
                store.fill(rows)
            for kind, search in store.searches.items():
                best = [[spans[i] for i in search(q.text, vector, 100)] for q, vector in pairs]
                scores = [
                    score_evidence(corpus, units, q.evidence).recall
                    for (q, _), units in zip(pairs, best, strict=True)
                ]
                found[f"{which}, {kind}"] = 100 * np.array(scores)
    return found


def locations(folder: Path, name: str) -> dict[str, str]:
    """Where the rows of a set are, by engine."""
    found = {"LanceDB": str(folder / "rows.lance")}
    if server := os.environ.get("PRECISE_POSTGRES"):
        found["PostgreSQL"] = f"{server}{'&' if '?' in server else '?'}collection=recall_{name}"
    return found


if __name__ == "__main__":
    main()
