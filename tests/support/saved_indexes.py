"""Small saved indexes of each kind, and ways to change their files with checksums that agree."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from precise_rag.index import (
    DenseIndex,
    DocumentIndex,
    HybridIndex,
    SentenceContextIndex,
    WordSentenceIndex,
)
from precise_rag.protocols import Encoder
from precise_rag.testing import HashEncoder
from precise_rag.types import Document

ENCODER = HashEncoder(8)
DOCUMENTS = (
    Document(
        "lamp", "The lamp is lit at dusk. Ilse keeps it.\n\nThe road is closed.", {"shelf": 3, "tags": ["a"]}
    ),
    Document("blank", " \n "),
    Document("straße", "Otters sleep 🦦 by the river. It floods in March, and the lamp is wet."),
)
QUERIES = ("Who keeps the lamp?", "otters in March", "zyzzyva")
BUILD: dict[str, Callable[[], DocumentIndex]] = {
    "dense": lambda: DenseIndex.build(DOCUMENTS, ENCODER, chunks="sentences", precision="int8"),
    "faiss": lambda: DenseIndex.build(DOCUMENTS, ENCODER, chunks="sentences", backend="faiss:HNSW8"),
    "hybrid": lambda: HybridIndex.build(DOCUMENTS, ENCODER, passages=2),
    "sentence-context": lambda: SentenceContextIndex.build(DOCUMENTS, ENCODER, context="encode"),
    "word-sentence": lambda: WordSentenceIndex.build(DOCUMENTS, ENCODER),
}


def build(kind: str) -> DocumentIndex:
    """A small index of a kind; skips the test where a package that it needs is missing."""
    if kind == "faiss":
        pytest.importorskip("faiss")
    return BUILD[kind]()


def replace_encoder(index: DocumentIndex, encoder: Encoder | None) -> None:
    """Give an index another encoder."""
    for scheme in (index.scheme, getattr(index.scheme, "_dense", None)):
        if scheme is not None:
            scheme.encoder = encoder


def content(index: DocumentIndex) -> tuple[list[Any], list[Any]]:
    """Documents as they are, and what each query finds: ids, and scores that agree within rounding."""
    documents = [(d.id, d.text, dict(d.metadata)) for d in map(index.document, index.document_ids)]
    found = [
        [(c.id, c.text, pytest.approx(c.score, abs=1e-6)) for c in index.search(query, 100)]
        for query in QUERIES
    ]
    return documents, found


def read_manifest(path: Path) -> dict[str, Any]:
    """The manifest of the index in `path`."""
    manifest: dict[str, Any] = json.loads((path / "manifest.json").read_text("utf-8"))
    return manifest


def sign(path: Path, manifest: dict[str, Any], name: str = "manifest.json") -> str:
    """Write a manifest with the checksum that belongs to it, and return that."""
    content = {key: value for key, value in manifest.items() if key != "sha256"}
    digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    (path / name).write_text(json.dumps({**content, "sha256": digest}))
    return digest


def data_folder(path: Path) -> Path:
    """The folder of the only segment of the index in `path`."""
    (folder,) = path.glob("data-*")
    return folder


def read_segment(path: Path) -> dict[str, Any]:
    """What the only segment of the index in `path` says of its files."""
    files: dict[str, Any] = json.loads((data_folder(path) / "segment.json").read_text("utf-8"))
    return files


def sign_segment(path: Path, files: dict[str, Any]) -> None:
    """Write what a segment says of its files, with the checksums that belong to it."""
    digest = sign(data_folder(path), files, "segment.json")
    manifest = read_manifest(path)
    manifest["segments"][0]["sha256"] = digest
    sign(path, manifest)


def replace_array(path: Path, part: str, name: str, array: np.ndarray[Any, Any]) -> None:
    """Put another array in the place of one, with checksums that agree."""
    files = read_segment(path)
    np.save(data_folder(path) / f"{name}.npy", array, allow_pickle=True)
    entry = {
        "shape": list(array.shape),
        "dtype": array.dtype.str,
        "sha256": hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest(),
    }
    if part == "offsets":
        files["offsets"] = entry
    else:
        files[part][name] = entry
    sign_segment(path, files)


def replace_documents(path: Path, lines: bytes) -> None:
    """Put other documents in the place of those there, with checksums that agree."""
    files = read_segment(path)
    (data_folder(path) / "documents.jsonl").write_bytes(lines)
    files["documents"] = {"size": len(lines), "sha256": hashlib.sha256(lines).hexdigest()}
    sign_segment(path, files)
