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
    autouse=True, params=["one block", pytest.param("a segment for each document", marks=pytest.mark.slow)]
)
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


UNIT = r"must be between 0 .* and 1 .*, got"


@pytest.mark.parametrize(
    ("kind", "settings", "message"),
    [
        (DenseIndex, {"encoder": None}, "DenseIndex needs an encoder"),
        (HybridIndex, {"backend": "faiss"}, "unexpected keyword argument 'backend'"),
        (DenseIndex, {"backend": "torch"}, "backend must be 'numpy' or .*, got 'torch'"),
        (DenseIndex, {"backend": "faiss:"}, "backend must be 'numpy' or .*, got 'faiss:'"),
        (DenseIndex, {"alpha": 1.5}, rf"alpha {UNIT} 1\.5"),
        (DenseIndex, {"chunks": 0}, r"chunks must be 'sentences', .*, got 0"),
        (DenseIndex, {"chunk_vectors": "sum"}, "chunk_vectors must be .*'mean' or 'context', got 'sum'"),
        (SentenceContextIndex, {"passages": ""}, r"passages must be .*, got ''"),
        (SentenceContextIndex, {"context": "sum"}, "context must be 'mean' or 'encode', got 'sum'"),
        (SentenceContextIndex, {"similarity": "l2"}, "similarity must be 'cosine' or 'dot', got 'l2'"),
        (WordSentenceIndex, {"min_overlap": 0}, "min_overlap must be at least 1, got 0"),
        (WordSentenceIndex, {"max_candidates": 0}, "max_candidates must be at least 1, or None .*, got 0"),
        (HybridIndex, {"surroundings": -1}, r"surroundings must be .*, got -1"),
        (HybridIndex, {"dense_weight": 1.5}, r"dense_weight must be .*, got 1\.5"),
        (HybridIndex, {"pool": 0}, "pool must be .*, got 0"),
        (HybridIndex, {"k1": -1.0}, r"k1 must be .*, got -1\.0"),
        (HybridIndex, {"b": -0.1}, r"b must be .*, got -0\.1"),
        (HybridIndex, {"b": 1.1}, r"b must be .*, got 1\.1"),
        (HybridIndex, {"stop_words": "klingon"}, r"stop_words must be 'english'.*got 'klingon'"),
    ],
)
def test_other_settings_are_refused_by_their_names(
    kind: type[DocumentIndex], settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        kind.build([], **{"encoder": HashEncoder(), **settings})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha": 1.5}, rf"alpha {UNIT} 1\.5"),
        ({"returns": "page"}, "must be one of sentence, passage, mixed, got 'page'"),
        ({"max_tokens": 0}, "max_tokens must be at least 1, got 0"),
    ],
)
def test_other_options_of_a_search_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        HybridIndex.build([Document("a", "A cat.")], HashEncoder()).search("cat", **options)
