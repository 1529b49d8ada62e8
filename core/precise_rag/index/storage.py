"""A saved index: a manifest that names a folder of arrays, replaced in one step.

    path/manifest.json         format, kind, encoder, settings, and the name of the data folder
    path/data-…/*.npy          one array a column, memory-mapped on load
    path/data-…/documents.jsonl

The data folder is complete and on disk before the manifest that names it replaces the old one, so a
crash at any moment leaves the old index or the new one. One process may write while others read.
"""

import json
import os
import shutil
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from precise_rag.errors import IndexFormatError, InputError
from precise_rag.index.arrays.collection import Collection, Columns
from precise_rag.types import Document

FORMAT = "precise-rag-index"
VERSION = 1
_MANIFEST = "manifest.json"


def write_index(
    path: str | Path, manifest: dict[str, Any], collection: Collection, extras: Columns | None = None
) -> None:
    """Save, replacing an index that is already there. extras: arrays that do not go by rows.

    Raises InputError if `path` holds anything but an index, or metadata is not JSON.
    """
    path = Path(path)
    if path.exists() and not _is_replaceable(path):
        raise InputError(f"{path} holds other files; give an empty or new folder for the index")
    path.mkdir(parents=True, exist_ok=True)
    folder = path / f"data-{uuid.uuid4().hex}"
    folder.mkdir()
    try:
        extras = extras or {}
        for name, column in {**collection.columns, **extras, "offsets": collection.offsets}.items():
            with (folder / f"{name}.npy").open("wb") as file:
                np.save(file, column, allow_pickle=False)
                _flush(file.fileno())
        _write_text(folder / "documents.jsonl", map(_document_line, collection.documents.values()))
        _flush_folder(folder)
        manifest = {
            "format": FORMAT,
            "version": VERSION,
            **manifest,
            "columns": sorted(collection.columns),
            "extras": sorted(extras),
            "data": folder.name,
        }
        _write_text(folder / _MANIFEST, [json.dumps(manifest, ensure_ascii=False, indent=1)])
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    os.replace(folder / _MANIFEST, path / _MANIFEST)
    _flush_folder(path)
    for old in path.glob("data-*"):
        if old.name != folder.name:
            shutil.rmtree(old, ignore_errors=True)


def read_manifest(path: str | Path) -> dict[str, Any]:
    """The manifest of a saved index. Raises IndexFormatError if there is none that we can read."""
    file = Path(path) / _MANIFEST
    try:
        manifest = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise IndexFormatError(f"{path} holds no index; build one and save it there") from error
    except (OSError, ValueError) as error:
        raise IndexFormatError(f"{file} cannot be read ({error}); build the index again") from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise IndexFormatError(f"{file} is no manifest of a precise-rag index")
    if manifest.get("version") != VERSION:
        raise IndexFormatError(
            f"{path} has index format {manifest.get('version')!r}, this version reads {VERSION}; "
            "build the index again or install the version that wrote it"
        )
    return manifest


def read_index(path: str | Path) -> tuple[dict[str, Any], Collection, Columns]:
    """Manifest, collection and extra arrays; arrays are memory-mapped, read-only.

    Raises IndexFormatError if the index is missing, damaged or of another version.
    """
    manifest = read_manifest(path)
    while True:
        try:
            folder = Path(path) / manifest["data"]
            collection = _read_collection(folder, manifest["columns"])
            return manifest, collection, _read_arrays(folder, manifest["extras"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            newer = read_manifest(path)
            if newer == manifest:
                raise IndexFormatError(f"{path} is damaged ({error}); build the index again") from error
            manifest = newer  # a writer replaced the index while it was read


def _read_collection(folder: Path, columns: list[str]) -> Collection:
    with (folder / "documents.jsonl").open(encoding="utf-8") as lines:
        documents = {(document := Document(**json.loads(line))).id: document for line in lines}
    offsets = np.load(folder / "offsets.npy", allow_pickle=False)
    if len(offsets) != len(documents) + 1:
        raise ValueError(f"{len(documents)} documents, {len(offsets) - 1} expected")
    return Collection(documents, offsets, _read_arrays(folder, columns))


def _read_arrays(folder: Path, names: list[str]) -> Columns:
    return {name: np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False) for name in names}


def _is_replaceable(path: Path) -> bool:
    return path.is_dir() and all(f.name == _MANIFEST or f.name.startswith("data-") for f in path.iterdir())


def _document_line(document: Document) -> str:
    try:
        record = {"id": document.id, "text": document.text, "metadata": dict(document.metadata)}
        return json.dumps(record) + "\n"
    except (TypeError, ValueError) as error:
        raise InputError(f"document {document.id!r}: metadata cannot be saved as JSON: {error}") from error


def _write_text(path: Path, lines: Iterable[str] | Iterator[str]) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.writelines(lines)
        file.flush()
        _flush(file.fileno())


def _flush(descriptor: int) -> None:
    os.fsync(descriptor)


def _flush_folder(path: Path) -> None:
    if os.name == "nt":  # a folder cannot be opened there
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
