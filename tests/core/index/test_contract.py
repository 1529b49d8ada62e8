"""Every index keeps the same contract."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from precise_rag.index import (
    BM25Index,
    DenseIndex,
    DocumentIndex,
    HybridIndex,
    SentenceContextIndex,
    WordSentenceIndex,
    load_index,
)
from precise_rag.index.arrays import rough
from precise_rag.index.rows import nearest, segments
from precise_rag.testing import HashEncoder
from precise_rag.testing.index_contract import IndexContract
from precise_rag.types import Document


@pytest.fixture(autouse=True, params=["one segment", "a segment for each document"])
def segmented(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nearest, "EXACT_ROWS", 1)
    if request.param != "one segment":
        monkeypatch.setattr(rough, "LEAST_ROWS", 1)
        monkeypatch.setattr(segments, "SMALL", 0)
        monkeypatch.setattr(segments, "FACTOR", 0)
        monkeypatch.setattr(segments, "MOST_DELETED", 1)


def grown(
    kind: type[DocumentIndex], documents: Iterable[Document], encoder: HashEncoder, **settings: Any
) -> DocumentIndex:
    """Build an index at once, or document by document if segments are not merged."""
    if segments.SMALL:
        return kind.build(documents, encoder, **settings)
    index = kind(encoder, **settings)
    for document in documents:
        index.add([document])
    return index


class TestDense(IndexContract):
    def build(self, documents: Iterable[Document], encoder: HashEncoder) -> DocumentIndex:
        return grown(DenseIndex, documents, encoder, chunks="12 tokens")


class TestDenseMean(IndexContract):
    def build(self, documents: Iterable[Document], encoder: HashEncoder) -> DocumentIndex:
        return grown(DenseIndex, documents, encoder, chunks="paragraphs", chunk_vectors="mean")


class TestDenseTorch(IndexContract):
    def build(self, documents: Iterable[Document], encoder: HashEncoder) -> DocumentIndex:
        pytest.importorskip("torch")
        return grown(DenseIndex, documents, encoder, chunks="12 tokens", backend="torch")


class TestFaiss(IndexContract):
    def build(self, documents: Iterable[Document], encoder: HashEncoder) -> DocumentIndex:
        pytest.importorskip("faiss")
        return grown(DenseIndex, documents, encoder, chunks="12 tokens", backend="faiss")


class TestFaissGraph(IndexContract):
    def build(self, documents: Iterable[Document], encoder: HashEncoder) -> DocumentIndex:
        pytest.importorskip("faiss")
        graph = "faiss:HNSW16@efSearch=64"
        return grown(DenseIndex, documents, encoder, chunks="sentences", backend=graph)


class TestBM25(IndexContract):
    def build(self, documents: Iterable[Document], encoder: HashEncoder) -> DocumentIndex:
        return grown(BM25Index, documents, encoder, chunks="sentences")


class TestSentenceContext(IndexContract):
    def build(self, documents: Iterable[Document], encoder: HashEncoder) -> DocumentIndex:
        return grown(SentenceContextIndex, documents, encoder)


class TestSentenceContextEncoded(IndexContract):
    def build(self, documents: Iterable[Document], encoder: HashEncoder) -> DocumentIndex:
        return grown(
            SentenceContextIndex,
            documents,
            encoder,
            context="encode",
            similarity="dot",
            alpha=0.8,
            passages=2,
        )


class TestSentenceContextTorch(IndexContract):
    def build(self, documents: Iterable[Document], encoder: HashEncoder) -> DocumentIndex:
        pytest.importorskip("torch")
        return grown(SentenceContextIndex, documents, encoder, context="encode", backend="torch")


class TestSentenceContextFaiss(IndexContract):
    def build(self, documents: Iterable[Document], encoder: HashEncoder) -> DocumentIndex:
        pytest.importorskip("faiss")
        return grown(SentenceContextIndex, documents, encoder, backend="faiss:HNSW16@efSearch=64")


class TestSentenceContextEncodedFaiss(IndexContract):
    def build(self, documents: Iterable[Document], encoder: HashEncoder) -> DocumentIndex:
        pytest.importorskip("faiss")
        return grown(
            SentenceContextIndex, documents, encoder, context="encode", similarity="dot", backend="faiss"
        )


class TestWordSentenceFaiss(IndexContract):
    def build(self, documents: Iterable[Document], encoder: HashEncoder) -> DocumentIndex:
        pytest.importorskip("faiss")
        return grown(WordSentenceIndex, documents, encoder, backend="faiss:HNSW16@efSearch=64")


class TestHybridFaiss(IndexContract):
    def build(self, documents: Iterable[Document], encoder: HashEncoder) -> DocumentIndex:
        pytest.importorskip("faiss")
        return grown(HybridIndex, documents, encoder, backend="faiss:SQfp16", precision="float16")


class TestWordSentence(IndexContract):
    def build(self, documents: Iterable[Document], encoder: HashEncoder) -> DocumentIndex:
        return grown(WordSentenceIndex, documents, encoder)


class TestHybrid(IndexContract):
    def build(self, documents: Iterable[Document], encoder: HashEncoder) -> DocumentIndex:
        return grown(HybridIndex, documents, encoder)


class TestHybridTorch(IndexContract):
    def build(self, documents: Iterable[Document], encoder: HashEncoder) -> DocumentIndex:
        pytest.importorskip("torch")
        return grown(HybridIndex, documents, encoder, precision="int8", backend="torch:cpu")


class TestHybridSmall(IndexContract):
    def build(self, documents: Iterable[Document], encoder: HashEncoder) -> DocumentIndex:
        return grown(
            HybridIndex,
            documents,
            encoder,
            precision="float16",
            passages="paragraphs",
            surroundings=None,
            stop_words="none",
        )


@pytest.mark.parametrize(
    "kind", [TestDense, TestFaiss, TestBM25, TestSentenceContext, TestWordSentence, TestHybrid]
)
def test_load_index_finds_the_kind_of_a_saved_index(kind: type[IndexContract], tmp_path: Path) -> None:
    index = kind().built()
    index.save(tmp_path / "index")
    assert type(load_index(tmp_path / "index", index.encoder)) is type(index)
