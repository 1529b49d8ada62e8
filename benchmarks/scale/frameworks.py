"""LangChain's and LlamaIndex's own retrievers over LanceDB and PostgreSQL, beside DatabaseIndex.

    python -m benchmarks.scale.frameworks --data DIR --work W --sentences 100000

Rows are the sentences of the collection that `benchmarks.scale.build` made, with the vectors that it stored;
every store is filled through the framework's own methods, with its own tables, defaults and indexes (words,
and from 20,000 rows on vectors), and is kept in the work folder. Each retriever is asked in a process of its
own for the ten best sentences of SQuAD's questions, whose vectors are known. LangChain's store over LanceDB
has no hybrid search that works: it makes the index of words again for each question, and then fails.
PostgreSQL is in PRECISE_POSTGRES; the packages are the group "frameworks" of pyproject.toml.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as arrow

from benchmarks import record
from benchmarks.scale.build import Spent, large_parser, note, place, queries
from benchmarks.scale.stores import Encoder
from benchmarks.tables import table
from benchmarks.timing import percentiles, searched
from precise_rag.evaluation.runs.environment import peak_mb
from precise_rag.index import DatabaseIndex
from precise_rag.index.databases.lance import LanceEngine
from precise_rag.types import FloatArray

TOP_K, BATCH, INDEXED_FROM = 10, 2_000, 20_000
MEMORY, NAME = "memory of our process, MB", "frameworks"
Search = Callable[[str, FloatArray, int], list[str]]
"""From a query, its vector and a number of results to the ids of rows, best first."""


class Row(NamedTuple):
    """A sentence of a store."""

    id: str
    text: str
    vector: FloatArray


class Store(NamedTuple):
    """A vector store of a framework.

    count: its rows. fill: adds rows. index: makes its indexes. searches: by kind.
    """

    count: Callable[[], int]
    fill: Callable[[Sequence[Row]], object]
    index: Callable[[], object]
    searches: dict[str, Search]


def langchain_lance(folder: str, name: str) -> Store:
    """LangChain's store over LanceDB."""
    from langchain_community.vectorstores import LanceDB

    known = KnownVectors()
    store = LanceDB(uri=folder, table_name=name, embedding=known, mode="append")

    def fill(rows: Sequence[Row]) -> None:
        known.texts = {row.text: row.vector for row in rows}
        store.add_texts([row.text for row in rows], ids=[row.id for row in rows])

    def search(query: str, vector: FloatArray, top_k: int) -> list[str]:
        known.texts = {query: vector}
        return [found.metadata["id"] for found in store.similarity_search(query, top_k)]

    def count() -> int:
        table = store.get_table()
        return 0 if table is None else int(table.count_rows())

    return Store(count, fill, lambda: store.create_index(vector_col="vector"), {"vector": search})


def llamaindex_lance(folder: str, name: str) -> Store:
    """LlamaIndex's store over LanceDB; its first hybrid search makes the index of words."""
    from llama_index.core.vector_stores import VectorStoreQuery
    from llama_index.vector_stores.lancedb import LanceDBVectorStore

    store = LanceDBVectorStore(uri=folder, table_name=name, mode="create")

    def search(kind: str) -> Search:
        def run(query: str, vector: FloatArray, top_k: int) -> list[str]:
            asked = VectorStoreQuery(vector.tolist(), similarity_top_k=top_k, query_str=query)
            return list(store.query(asked, query_type=kind).ids or ())[:top_k]

        return run

    def count() -> int:
        return 0 if store._table is None else int(store._table.count_rows())

    searches = {kind: search(kind) for kind in ("vector", "hybrid")}
    return Store(count, lambda rows: store.add(nodes(rows)), lambda: store.create_index(), searches)


def langchain_postgres(server: str, name: str) -> Store:
    """LangChain's store over PostgreSQL."""
    from langchain_postgres import Column, PGEngine, PGVectorStore
    from langchain_postgres.v2.hybrid_search_config import HybridSearchConfig
    from langchain_postgres.v2.indexes import HNSWIndex

    name = f"langchain_{name}"
    known = KnownVectors()
    engine = PGEngine.from_connection_string(server.replace("postgresql://", "postgresql+psycopg://"))
    words = HybridSearchConfig(tsv_column="words", index_name=f"{name}_words")
    if not counted(server, name):
        engine.init_vectorstore_table(
            name,
            384,
            id_column=Column("langchain_id", "TEXT", nullable=False),
            hybrid_search_config=words,
            overwrite_existing=True,
        )
    store = PGVectorStore.create_sync(engine, known, name)
    hybrid = PGVectorStore.create_sync(engine, known, name, hybrid_search_config=words)

    def fill(rows: Sequence[Row]) -> None:
        vectors = [row.vector.tolist() for row in rows]
        hybrid.add_embeddings([row.text for row in rows], vectors, ids=[row.id for row in rows])

    def index() -> None:
        store.apply_vector_index(HNSWIndex(name=f"{name}_vectors"))
        hybrid.apply_hybrid_search_index()

    def by_vector(query: str, vector: FloatArray, top_k: int) -> list[str]:
        known.texts = {query: vector}
        return [str(found.id) for found in store.similarity_search(query, top_k)]

    def by_both(query: str, vector: FloatArray, top_k: int) -> list[str]:
        known.texts = {query: vector}
        # a configuration keeps the words of the first question that it was used for
        config = HybridSearchConfig(tsv_column="words", primary_top_k=top_k, secondary_top_k=top_k)
        found = hybrid.similarity_search(query, top_k, hybrid_search_config=config)
        return [str(document.id) for document in found]

    return Store(lambda: counted(server, name), fill, index, {"vector": by_vector, "hybrid": by_both})


def llamaindex_postgres(server: str, name: str) -> Store:
    """LlamaIndex's store over PostgreSQL."""
    from llama_index.core.vector_stores import VectorStoreQuery
    from llama_index.core.vector_stores.types import VectorStoreQueryMode
    from llama_index.vector_stores.postgres import PGVectorStore

    name = f"llamaindex_{name}"
    graph = {
        "hnsw_m": 16,
        "hnsw_ef_construction": 64,
        "hnsw_ef_search": 40,
        "hnsw_dist_method": "vector_cosine_ops",
    }
    store = PGVectorStore.from_params(
        connection_string=server.replace("postgresql://", "postgresql+psycopg2://"),
        async_connection_string=server.replace("postgresql://", "postgresql+asyncpg://"),
        table_name=name,
        embed_dim=384,
        hybrid_search=True,
        hnsw_kwargs=graph,
    )

    def search(mode: VectorStoreQueryMode) -> Search:
        def run(query: str, vector: FloatArray, top_k: int) -> list[str]:
            asked = VectorStoreQuery(vector.tolist(), similarity_top_k=top_k, query_str=query, mode=mode)
            return list(store.query(asked).ids or ())[:top_k]

        return run

    modes = {"vector": VectorStoreQueryMode.DEFAULT, "hybrid": VectorStoreQueryMode.HYBRID}
    searches = {kind: search(mode) for kind, mode in modes.items()}
    return Store(
        lambda: counted(server, f"data_{name}"), lambda rows: store.add(nodes(rows)), lambda: None, searches
    )


class KnownVectors:
    """LangChain's embeddings of texts that are known."""

    def __init__(self) -> None:
        self.texts: dict[str, FloatArray] = {}

    def embed_documents(self, texts: Sequence[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        found: list[float] = self.texts[text].tolist()
        return found

    async def aembed_query(self, text: str) -> list[float]:
        return self.embed_query(text)


def nodes(rows: Sequence[Row]) -> list[Any]:
    from llama_index.core.schema import TextNode

    return [TextNode(id_=row.id, text=row.text, embedding=row.vector.tolist()) for row in rows]


def counted(server: str, table: str) -> int:
    """The rows of a table in PostgreSQL; 0 if it does not exist."""
    import psycopg

    with psycopg.connect(server) as connection:
        if connection.execute("SELECT to_regclass(%s)", [f"public.{table}"]).fetchone() == (None,):
            return 0
        found = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
        return 0 if found is None else int(found[0])


def opened(folder: Path, which: str, name: str) -> Store:
    """A store of a framework: "langchain-lance" and so on. folder: of stores in LanceDB."""
    if which.endswith("lance"):
        return STORES[which](str(folder / f"{which}.lance"), name)
    return STORES[which](os.environ["PRECISE_POSTGRES"], name)


def filled(store: Store, rows: Iterator[Row]) -> dict[str, float]:
    """Add rows to a store that is empty, and make its indexes. Returns seconds of CPU."""
    spent, n_rows = Spent(), 0
    while batch := list(islice(rows, BATCH)):
        spent("fill", lambda batch=batch: store.fill(batch))
        n_rows += len(batch)
    if n_rows >= INDEXED_FROM:
        spent("index", store.index)
    return spent.figures()


STORES: dict[str, Callable[[str, str], Store]] = {
    "langchain-lance": langchain_lance,
    "llamaindex-lance": llamaindex_lance,
    "langchain-postgres": langchain_postgres,
    "llamaindex-postgres": llamaindex_postgres,
}
OURS = ("lance", "postgres")


def main() -> None:
    parser = large_parser(__spec__.name, __doc__, 100_000, ",".join((*OURS, *STORES)))
    parser.add_argument("--queries", type=int, default=50)
    parser.add_argument("--child", choices=("fill", "measure"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child == "fill":
        store = opened(args.work, args.stores, f"scale_{args.sentences}")
        if not store.count():
            note(args, args.stores, filled(store, rows_of(args)), NAME)
    elif args.child:
        measure(args, args.stores)
    else:
        load = os.getloadavg()[0]
        for name in args.stores.split(","):
            for child in ("measure",) if name in OURS else ("fill", "measure"):
                arguments = [*sys.argv[1:], "--stores", name, "--child", child]
                subprocess.run([sys.executable, "-m", __spec__.name, *arguments], check=True)
        save(args, load)


def measure(args: Any, which: str) -> None:
    """Measure the searches of a store and keep the figures."""
    pairs, before = queries(args), peak_mb()
    if which in OURS:
        index = DatabaseIndex(place(args, which), Encoder(384))
        searches: dict[str, Search] = {
            "hybrid": lambda query, vector, top_k: [
                c.id for c in index.search(query, top_k, vector=vector, returns="sentence")
            ]
        }
    else:
        searches = opened(args.work, which, f"scale_{args.sentences}").searches
    for kind, search in searches.items():

        def best(query: str, vector: FloatArray, search: Search = search) -> list[str]:
            return search(query, vector, TOP_K)

        searched(best, pairs[:5])
        found, seconds, cpu = searched(best, pairs)
        figures = {f"{kind}, CPU ms": round(1000 * cpu / len(pairs), 1), **percentiles(seconds, kind)}
        figures[f"{kind}, rows found"] = round(sum(map(len, found)) / len(pairs), 1)
        note(args, which, figures, NAME)
    note(args, which, {MEMORY: round(peak_mb() - before)}, NAME)


def rows_of(args: Any) -> Iterator[Row]:
    """The rows of the collection in LanceDB."""
    table = LanceEngine(place(args, "lance"))._open()
    columns = table.search().where("place >= 0").select(["id", "text", "vector"]).limit(None)
    for batch in columns.to_batches(BATCH):
        found = arrow.Table.from_batches([batch])
        flat = found["vector"].combine_chunks().flatten().to_numpy(zero_copy_only=False)
        vectors = flat.astype("float32").reshape(len(found), -1)
        yield from map(Row, found["id"].to_pylist(), found["text"].to_pylist(), vectors)


def save(args: argparse.Namespace, load: float) -> None:
    measured = json.loads((args.work / f"{NAME}-{args.sentences}.json").read_text())
    names = ("CPU ms", "p50 ms", "p95 ms", "rows found")
    rows = [
        {"store": store, "search": kind}
        | {name: figures[f"{kind}, {name}"] for name in names}
        | {"memory, MB": figures[MEMORY]}
        for store, figures in measured.items()
        for kind in ("vector", "hybrid")
        if f"{kind}, CPU ms" in figures
    ]
    made = record.made(__spec__.name, args, **{"load at the beginning": round(load, 1)})
    title = f"# {args.sentences:,} sentences in the frameworks' own stores (load {load:.0f})\n\n"
    record.save("scale", f"{NAME}-{args.sentences}", made, title + table(rows), {"stores": measured})


if __name__ == "__main__":
    main()
