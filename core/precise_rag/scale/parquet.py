"""Writes sentences with weighted vectors to Parquet files, on any number of machines.

    output/part-<hash>.parquet      id text vector doc_id start end passage_start passage_end metadata

A file is named after its content, and renamed to that name when it is complete. So if a worker dies, it
leaves no incomplete file and another worker repeats its batch. A repeated run skips the documents that
are already in a file.
"""

import hashlib
import json
import os
import uuid
from collections.abc import Iterable, Mapping, Set
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from precise_rag._extras import require
from precise_rag.encoders import DEFAULT_ENCODER, load_encoder
from precise_rag.errors import InputError
from precise_rag.facts import read_facts
from precise_rag.index.export import WeightedPiece, weighted_sentences
from precise_rag.metadata_keys import FACTS_KEY
from precise_rag.protocols import Encoder
from precise_rag.scale.batches import as_documents, as_items
from precise_rag.types import Document


class Progress(NamedTuple):
    """The result of a run.

    documents: number of documents written.
    sentences: number of sentences written.
    skipped: number of documents that were already in the folder.
    """

    documents: int
    sentences: int
    skipped: int


def embed_to_parquet(
    documents: Iterable[Document] | Any,
    output: str | Path,
    *,
    encoder: str | Encoder = DEFAULT_ENCODER,
    workers: int = 2,
    gpus_per_worker: float = 0,
    batch_documents: int = 64,
    **settings: Any,
) -> Progress:
    """Write the sentences of documents, with their weighted vectors, for a vector store to load.

    documents: Documents, which this process reads; or a Ray dataset, which the workers read, with the
    columns "id", "text" and optionally "metadata" (JSON or, in JSON Lines, an object).
    output: a folder that all workers can write to.
    encoder: a name for `load_encoder`, or an encoder that can be pickled. Each worker loads it once.
    workers: largest number of Ray actors; a dataset that Ray reads needs a CPU beside the first one.
    gpus_per_worker: GPUs for each actor; can be a fraction.
    batch_documents: number of documents in one file.
    settings: the settings of SentenceContextIndex (alpha, passages, …); the same for all runs that write
    to one folder.
    Raises InputError if the folder was written with another encoder or other settings, MissingExtra
    without Ray.

    Starts Ray on this machine if it is not running; on a cluster, call `ray.init` first.
    """
    for name, number in (("workers", workers), ("batch_documents", batch_documents)):
        if number < 1:
            raise InputError(f"{name} must be at least 1, got {number}")
    ray_data = require("ray.data", extra="ray")
    folder = Path(output)
    folder.mkdir(parents=True, exist_ok=True)
    _check_settings(folder, encoder, settings)
    done = _hashes(folder)
    skipped = 0
    if not hasattr(documents, "map_batches"):
        given = list(documents)
        todo = [document for document in given if _hash(document) not in done]
        skipped = len(given) - len(todo)
        if not todo:
            return Progress(0, 0, skipped)
        items = as_items(todo)
        documents = ray_data.from_items(items, override_num_blocks=-(-len(todo) // batch_documents))
    counts = documents.map_batches(
        _Worker,
        fn_constructor_args=(encoder, folder, settings, done),
        batch_size=batch_documents,
        num_cpus=None if gpus_per_worker else 1,
        num_gpus=gpus_per_worker or None,
        concurrency=(1, workers),  # all at once could leave no CPU for reading
    ).take_all()
    total = [sum(int(count[name]) for count in counts) for name in Progress._fields]
    return Progress(total[0], total[1], total[2] + skipped)


class _Worker:
    """A Ray actor that writes batches of documents with one encoder."""

    def __init__(
        self, encoder: str | Encoder, folder: Path, settings: Mapping[str, Any], done: Set[str]
    ) -> None:
        self._encoder = load_encoder(encoder)
        self._folder = folder
        self._settings = settings
        self._done = done

    def __call__(self, batch: Mapping[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[np.int64]]:
        """Write the documents that are in no file yet. Returns the Progress as columns of one row."""
        given = as_documents(batch)
        hashes = {hash_: document for document in given if (hash_ := _hash(document)) not in self._done}
        sentences = list(weighted_sentences(hashes.values(), self._encoder, **self._settings))
        if hashes:
            _write_part(self._folder, list(hashes), sentences)
        progress = Progress(len(hashes), len(sentences), len(given) - len(hashes))
        return {name: np.array([value]) for name, value in progress._asdict().items()}


def _write_part(folder: Path, hashes: list[str], sentences: list[WeightedPiece]) -> None:
    arrow = require("pyarrow", extra="ray")
    rows: dict[str, Any] = {"id": [s.id for s in sentences], "text": [s.text for s in sentences]}
    if sentences:
        values = np.stack([s.vector for s in sentences])
        rows["vector"] = arrow.FixedSizeListArray.from_arrays(values.ravel(), values.shape[1])
    facts = [read_facts(s.metadata) for s in sentences]
    rows |= {name: [fact[name] for fact in facts] for name in ("doc_id", "start", "end")}
    for place, name in enumerate(("passage_start", "passage_end")):
        rows[name] = [fact["passage"][place] for fact in facts]
    given = [{k: v for k, v in s.metadata.items() if k != FACTS_KEY} for s in sentences]
    rows["metadata"] = [json.dumps(metadata) for metadata in given]
    table = arrow.table(rows).replace_schema_metadata({"documents": json.dumps(hashes)})
    name = hashlib.sha256("".join(hashes).encode()).hexdigest()[:32]
    temporary = folder / f".{uuid.uuid4().hex}.tmp"
    require("pyarrow.parquet", extra="ray").write_table(table, temporary)
    os.replace(temporary, folder / f"part-{name}.parquet")


def _hashes(folder: Path) -> set[str]:
    """Read the hashes of all documents that are in complete files."""
    parquet = require("pyarrow.parquet", extra="ray")
    found: set[str] = set()
    for part in folder.glob("part-*.parquet"):
        found.update(json.loads(parquet.read_schema(part).metadata[b"documents"]))
    return found


def _hash(document: Document) -> str:
    content = json.dumps([document.id, document.text, dict(document.metadata)], sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()[:32]


def _check_settings(folder: Path, encoder: str | Encoder, settings: Mapping[str, Any]) -> None:
    """Record the encoder and settings in the folder, or compare them with those recorded there."""
    name = encoder if isinstance(encoder, str) else encoder.name
    wanted = {"encoder": name, "settings": {k: getattr(v, "name", v) for k, v in settings.items()}}
    note = folder / "settings.json"
    if not note.exists():
        note.write_text(json.dumps(wanted), encoding="utf-8")
    elif (noted := json.loads(note.read_text(encoding="utf-8"))) != wanted:
        raise InputError(f"{folder} was written with {noted}, but this run has {wanted}; pass another folder")
