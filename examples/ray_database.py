"""Fill PostgreSQL on any number of machines: Ray's workers encode documents and add them to one index.

    pip install 'precise-rag[postgres]' 'ray[data]'
    python examples/ray_database.py documents.jsonl postgresql://user@host/database 2

Each line of the file has "id", "text" and optionally "metadata". `add` leaves a document alone that is there
with the same text, so a batch whose worker dies is repeated. On a cluster, call `ray.init("auto")` first.
"""

import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
import ray.data

from precise_rag import Document
from precise_rag.encoders import DEFAULT_ENCODER, load_encoder
from precise_rag.index import DatabaseIndex
from precise_rag.protocols import Encoder


class Writer:
    """One worker: it loads the encoder once, and then encodes and writes batches."""

    def __init__(self, location: str, encoder: str | Encoder) -> None:
        self.index = DatabaseIndex(location, load_encoder(encoder))

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        none = [None] * len(batch["id"])
        columns = zip(batch["id"], batch["text"], batch.get("metadata", none), strict=True)
        documents = [Document(str(id_), str(text), record(about)) for id_, text, about in columns]
        self.index.add(documents)
        return {"documents": np.array([len(documents)])}


def record(about: Mapping[str, Any] | None) -> dict[str, Any]:
    """The fields that a record has; Arrow gives each record the fields of all, with None."""
    return {name: value for name, value in (about or {}).items() if value is not None}


def fill(
    documents: "ray.data.Dataset", location: str, workers: int = 2, encoder: str | Encoder = DEFAULT_ENCODER
) -> int:
    """Add the documents of a dataset, and return their number."""
    counts = documents.map_batches(
        Writer,
        fn_constructor_args=(location, encoder),
        batch_size=64,
        num_cpus=1,  # with GPUs: num_gpus=1 in its place
        concurrency=(1, workers),  # all at once could leave no CPU for reading
    )
    return int(counts.sum("documents") or 0)


if __name__ == "__main__":
    path, location, workers = sys.argv[1:]
    print(f"{fill(ray.data.read_json(path), location, int(workers)):,} documents are in {location}")
    DatabaseIndex(location, load_encoder()).optimize()
