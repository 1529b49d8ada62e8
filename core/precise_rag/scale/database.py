"""Fills a database with the sentences of documents, on any number of machines.

Each worker encodes batches and writes them to the database itself. A batch is repeated if its worker dies,
and a document that is there with the same text is left alone. So a worker that is killed loses and doubles
nothing, and a repeated run does only what is missing.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from precise_rag._extras import require
from precise_rag.encoders import DEFAULT_ENCODER, load_encoder
from precise_rag.errors import InputError
from precise_rag.index import DatabaseIndex
from precise_rag.protocols import Encoder
from precise_rag.scale.batches import as_documents, as_items
from precise_rag.types import Document


def embed_to_database(
    documents: Iterable[Document] | Any,
    location: str,
    *,
    encoder: str | Encoder = DEFAULT_ENCODER,
    workers: int = 2,
    gpus_per_worker: float = 0,
    batch_documents: int = 64,
    **settings: Any,
) -> int:
    """Add documents to a `DatabaseIndex` with Ray Data. Returns the number of documents given.

    documents: Documents, which this process reads; or a Ray dataset, which the workers read
        (`ray.data.read_parquet`, `read_json`), with the columns "id", "text" and optionally "metadata",
        which are JSON or, in JSON Lines, an object.
    location: the database, see `load_engine`; all workers must reach it.
    encoder: a name for `load_encoder`, or an encoder that can be pickled. Each worker loads it once.
    workers: largest number of Ray actors; a dataset that Ray reads needs a CPU beside the first one.
    gpus_per_worker: GPUs for each actor; can be a fraction.
    batch_documents: number of documents that a worker encodes and writes together.
    settings: those of `DatabaseIndex`.
    Raises InputError if the collection has other settings, and MissingExtra without Ray.

    Starts Ray on this machine if it is not running; on a cluster, call `ray.init` first. Call
    `DatabaseIndex.optimize` afterwards.
    """
    for name, number in (("workers", workers), ("batch_documents", batch_documents)):
        if number < 1:
            raise InputError(f"{name} must be at least 1, got {number}")
    ray_data = require("ray.data", extra="ray")
    DatabaseIndex(location, load_encoder(encoder), **settings)  # raises what each worker would
    if not hasattr(documents, "map_batches"):
        items = as_items(list(documents))
        if not items:
            return 0
        documents = ray_data.from_items(items, override_num_blocks=-(-len(items) // batch_documents))
    counts = documents.map_batches(
        _Worker,
        fn_constructor_args=(encoder, location, settings),
        batch_size=batch_documents,
        num_cpus=None if gpus_per_worker else 1,
        num_gpus=gpus_per_worker or None,
        concurrency=(1, workers),  # all at once could leave no CPU for reading
    ).take_all()
    return sum(int(count["documents"]) for count in counts)


class _Worker:
    """A Ray actor that writes batches of documents with one encoder."""

    def __init__(self, encoder: str | Encoder, location: str, settings: Mapping[str, Any]) -> None:
        self._index = DatabaseIndex(location, load_encoder(encoder), **settings)

    def __call__(self, batch: Mapping[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[np.int64]]:
        """Write the documents of a batch. Returns their number as a column of one row."""
        given = as_documents(batch)
        self._index.add(given)
        return {"documents": np.array([len(given)])}
