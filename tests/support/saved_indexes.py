"""Small saved indexes of each kind, and ways to change their files with checksums that agree."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from precise_rag.index import DenseIndex, DocumentIndex, HybridIndex, SentenceContextIndex, WordSentenceIndex
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
LOOP: dict[str, object] = {}
LOOP["self"] = LOOP
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


def content(index: DocumentIndex) -> tuple[list[Any], list[Any]]:
    """Documents as they are, and what each query finds: ids, and scores that agree within rounding."""
    documents = [(d.id, d.text, dict(d.metadata)) for d in map(index.document, index.document_ids)]
    found = [
        [(c.id, c.text, pytest.approx(c.score, abs=1e-6)) for c in index.search(query, 100)]
        for query in QUERIES
    ]
    return documents, found


def tree(folder: Path) -> dict[str, bytes | None]:
    """Every path under a folder with the bytes of regular files."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() and not path.is_symlink() else None
        for path in sorted(folder.rglob("*"))
    }


def read_manifest(path: Path) -> dict[str, Any]:
    """The manifest of the index in `path`."""
    manifest: dict[str, Any] = json.loads((path / "manifest.json").read_text("utf-8"))
    return manifest


def sign(path: Path, manifest: dict[str, Any]) -> None:
    """Write a manifest with the checksum that belongs to it."""
    content = {key: value for key, value in manifest.items() if key != "sha256"}
    digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    (path / "manifest.json").write_text(json.dumps({**content, "sha256": digest}))


def data_file(path: Path) -> Path:
    """The file of the only segment of the index in `path`."""
    (file,) = path.glob("data-*")
    return file


def replace_arrays(path: Path, arrays: dict[str, np.ndarray[Any, Any]]) -> None:
    """Put other arrays in the place of those of the same names, with checksums that agree."""
    file, manifest = data_file(path), read_manifest(path)
    save_file({**load_file(file), **arrays}, file)
    data = file.read_bytes()
    manifest["shards"][0] |= {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data)}
    sign(path, manifest)


def nested(depth: int) -> list[Any]:
    """Lists within lists."""
    inner: list[Any] = []
    for _ in range(depth):
        inner = [inner]
    return inner
