"""Every index keeps the same contract, and refuses settings that it does not know."""

from collections.abc import Iterable
from typing import Any

import pytest

from precise_rag.errors import InputError
from precise_rag.index import (
    DenseIndex,
    DocumentIndex,
    HybridIndex,
    SentenceContextIndex,
    WordSentenceIndex,
    dense,
    table,
    vectors,
)
from precise_rag.testing import HashEncoder
from precise_rag.types import Document
from support.index_contract import IndexContract


@pytest.fixture(
    autouse=True, params=["one shard", pytest.param("a shard for each document", marks=pytest.mark.slow)]
)
def segmented(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dense, "EXACT_ROWS", 1)
    if request.param != "one shard":
        monkeypatch.setattr(vectors, "LEAST_ROWS", 1)
        monkeypatch.setattr(table, "SMALL", 0)
        monkeypatch.setattr(table, "FACTOR", 0)
        monkeypatch.setattr(table, "MOST_DELETED", 1)


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
            """Build an index at once, or document by document if shards are not merged."""
            if "backend" in settings:
                pytest.importorskip(settings["backend"].partition(":")[0])
            if table.SMALL:
                return kind.build(documents, encoder, **settings)
            index = kind(encoder, **settings)
            for document in documents:
                index.add([document])
            return index

    return Kept


globals().update({f"Test{name}": contract(*made) for name, made in KINDS.items()})


def test_an_encoder_is_needed_and_settings_of_other_kinds_are_refused() -> None:
    with pytest.raises(InputError, match="DenseIndex needs an encoder"):
        DenseIndex.build([])
    with pytest.raises(InputError, match="unexpected keyword argument 'backend'"):
        HybridIndex.build([], HashEncoder(), backend="faiss")
