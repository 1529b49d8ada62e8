"""Reading a saved index; see `folder` for what is in it."""

import os
import stat
from pathlib import Path
from typing import Any

import numpy as np

from precise_rag.checks import shown
from precise_rag.errors import IndexFormatError, InputError
from precise_rag.index.arrays.collection import Collection
from precise_rag.index.arrays.words import Vocabulary, read_vocabulary
from precise_rag.index.rows.segments import Part, Segment, Stored
from precise_rag.index.storage.files import Verify, read_array, read_documents_file
from precise_rag.index.storage.manifest import read_manifest, read_segment


def read_index(path: str | Path, verify: Verify = "full") -> tuple[dict[str, Any], list[Part]]:
    """Manifest and parts; arrays are memory-mapped, read-only.

    verify: see `Verify`.
    Raises IndexFormatError if the index is missing, damaged or of another version.
    """
    if verify not in ("full", "shape"):
        raise InputError(f"verify must be 'full' or 'shape', got {shown(verify)}")
    manifest = read_manifest(path)
    while True:
        try:
            return manifest, _read_parts(Path(path), manifest, verify)
        except (OSError, ValueError, RecursionError, MemoryError) as error:
            newer = read_manifest(path)
            if newer == manifest:
                raise IndexFormatError(f"{path} is damaged ({error}); build the index again") from error
            manifest = newer  # a writer replaced the index while it was read


def _read_parts(path: Path, manifest: dict[str, Any], verify: Verify) -> list[Part]:
    parts = [_read_part(path, entry, verify) for entry in manifest["segments"]]
    ids = [document.id for part in parts for document in part.documents]
    if len(set(ids)) < len(ids):
        raise ValueError("a document is in two segments")
    return parts


def _read_part(path: Path, entry: dict[str, Any], verify: Verify) -> Part:
    folder = path / entry["data"]
    if not stat.S_ISDIR(os.lstat(folder).st_mode):
        raise ValueError(f"{folder.name} is not a folder")
    files = read_segment(folder, entry)
    offsets = read_array(folder, "offsets", files["offsets"], verify)
    columns = {n: read_array(folder, n, array, verify) for n, array in files["columns"].items()}
    extras = {n: read_array(folder, n, array, verify) for n, array in files["extras"].items()}
    documents = read_documents_file(folder, files["documents"], verify)
    collection = Collection(documents, offsets, columns)
    collection.check()
    words = Vocabulary(frozenset(), read_vocabulary(files.get("vocabulary")))
    stored = Stored(path.resolve(), entry["data"], entry["sha256"])
    segment = Segment(collection, words, extras, stored)
    if not entry["deleted"]:
        return Part(segment)
    if max(entry["deleted"]) >= len(documents):
        raise ValueError(f"{folder.name} does not hold all documents that are deleted")
    alive = np.ones(len(documents), dtype=np.bool_)
    alive[entry["deleted"]] = False
    return Part(segment, alive)
