"""Every index keeps the same contract."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from precise_rag.index import (
    DenseIndex,
    DocumentIndex,
    HybridIndex,
    SentenceContextIndex,
    WordSentenceIndex,
    dense,
    load_index,
    table,
    vectors,
)
from precise_rag.testing import HashEncoder
from precise_rag.testing.index_contract import IndexContract
from precise_rag.types import Document


@pytest.fixture(autouse=True, params=["one block", "a segment for each document"])
def segmented(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dense, "EXACT_ROWS", 1)
    if request.param != "one block":
        monkeypatch.setattr(vectors, "LEAST_ROWS", 1)
        monkeypatch.setattr(table, "SMALL", 0)
        monkeypatch.setattr(table, "FACTOR", 0)
        monkeypatch.setattr(table, "MOST_DELETED", 1)


def grown(
    kind: type[DocumentIndex], documents: Iterable[Document], encoder: HashEncoder, **settings: Any
) -> DocumentIndex:
    """Build an index at once, or document by document if blocks are not merged."""
    if table.SMALL:
        return kind.build(documents, encoder, **settings)
    index = kind(encoder, **settings)
    for document in documents:
        index.add([document])
    return index


GRAPH = "faiss:HNSW16@efSearch=64"
SMALL = {"precision": "int8", "passages": "paragraphs", "surroundings": None, "stop_words": "none"}
KINDS: dict[str, tuple[type[DocumentIndex], dict[str, Any]]] = {
    "Dense": (DenseIndex, {"chunks": "12 tokens"}),
    "DenseMean": (DenseIndex, {"chunks": "paragraphs", "chunk_vectors": "mean"}),
    "Faiss": (DenseIndex, {"chunks": "12 tokens", "backend": "faiss"}),
    "FaissGraph": (DenseIndex, {"chunks": "sentences", "backend": GRAPH}),
    "SentenceContext": (SentenceContextIndex, {}),
    "SentenceContextEncoded": (
        SentenceContextIndex,
        {"context": "encode", "similarity": "dot", "alpha": 0.8, "passages": 2},
    ),
    "WordSentence": (WordSentenceIndex, {}),
    "Hybrid": (HybridIndex, {}),
    "HybridSmall": (HybridIndex, SMALL),
}


def contract(kind: type[DocumentIndex], settings: dict[str, Any]) -> type[IndexContract]:
    """The tests of the contract on an index with settings."""

    class Kept(IndexContract):
        def build(self, documents: Iterable[Document], encoder: HashEncoder) -> DocumentIndex:
            if "backend" in settings:
                pytest.importorskip(settings["backend"].partition(":")[0])
            return grown(kind, documents, encoder, **settings)

    return Kept


globals().update({f"Test{name}": contract(*made) for name, made in KINDS.items()})


@pytest.mark.parametrize("name", ["Dense", "Faiss", "SentenceContext", "WordSentence", "Hybrid"])
def test_load_index_finds_the_kind_of_a_saved_index(name: str, tmp_path: Path) -> None:
    index = contract(*KINDS[name])().built()
    index.save(tmp_path / "index")
    assert type(load_index(tmp_path / "index", index.encoder)) is type(index)
