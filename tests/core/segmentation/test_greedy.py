from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from precise_rag import Document
from precise_rag.encoders import load_encoder
from precise_rag.encoders.geometry import geometry_of
from precise_rag.segmentation import GreedySegmenter
from precise_rag.sentences import paragraph_ids, split_sentences
from precise_rag.testing import HashEncoder
from precise_rag.types import FloatArray, SentenceTable
from support.segmentation import any_text


def texts(chunks) -> list[str]:
    return [chunk.text for chunk in chunks]


def table_of(text: str, vectors: list[list[float]]) -> SentenceTable:
    spans = split_sentences(text)
    rows = np.array(vectors, dtype=np.float32)
    counts = np.ones(len(spans), dtype=np.int64)
    return SentenceTable("t", np.array(spans), paragraph_ids(text, spans), counts, rows)


def test_a_chunk_ends_where_the_cosine_is_below_the_threshold() -> None:
    text = "One. Two. Three. Four."
    encoder = load_encoder()
    table = table_of(text, [[1, 0], [0.8, 0.6], [0, 1], [0, 1]])
    greedy = GreedySegmenter(encoder, threshold=0.7)
    assert texts(greedy.segment(text, table)) == ["One. Two. ", "Three. Four."]
    assert texts(GreedySegmenter(encoder, threshold=0.7, max_chars=8).segment(text, table)) == [
        "One. ",
        "Two. ",
        "Three. ",
        "Four.",
    ]
    assert texts(GreedySegmenter(encoder, threshold=0.5).segment(text, table)) == [text]
    count_words = GreedySegmenter(
        encoder, threshold=0.5, max_chars=3, length_function=lambda texts: [len(t.split()) for t in texts]
    )
    assert texts(count_words.segment(text, table)) == ["One. Two. Three. ", "Four."]


@settings(deadline=None)
@given(text=any_text, max_chars=st.integers(1, 600))
def test_chunks_tile_the_text_and_keep_the_limit(text: str, max_chars: int) -> None:
    greedy = GreedySegmenter(HashEncoder(), threshold=0.2, max_chars=max_chars)
    chunks = greedy.segment(text)
    assert "".join(texts(chunks)) == (text if text.strip() else "")
    assert all(len(chunk.text) <= max_chars for chunk in chunks)
    assert chunks == next(iter(greedy.segment_many([text])))


@settings(deadline=None, max_examples=50)
@given(text=any_text, limit=st.integers(2, 60), joint=st.integers(1, 9))
def test_the_limit_holds_when_a_text_is_longer_than_its_parts(text: str, limit: int, joint: int) -> None:
    """As with a tokenizer that reads the characters around a gap in another way than each side alone."""

    def length(texts: Sequence[str]) -> list[int]:
        return [len(t) + joint * (len(t) // 7) for t in texts]

    chunks = GreedySegmenter(HashEncoder(), threshold=-1, max_chars=limit, length_function=length).segment(
        text
    )
    assert "".join(texts(chunks)) == (text if text.strip() else "")
    assert all(length([chunk.text]) <= [limit] or len(chunk.text) == 1 for chunk in chunks)


class CountingEncoder(HashEncoder):
    """Records how many texts each call of `encode` gets."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes: list[int] = []

    def encode(self, texts: Sequence[str], **options: Any) -> FloatArray:
        self.sizes.append(len(texts))
        return super().encode(texts, **options)


def test_several_texts_are_encoded_together() -> None:
    encoder = CountingEncoder()
    documents = [
        Document(name, f"The {name} sat. Two dogs. The {name} ran.") for name in ("cat", "owl", "fox")
    ]
    geometry_of(encoder)  # is measured once, by sentences of its own
    encoder.sizes.clear()
    greedy = GreedySegmenter(encoder, threshold=0.2)
    many = list(greedy.segment_many(iter(documents), show_progress=True))
    assert encoder.sizes == [7]
    assert many == [greedy.segment(document) for document in documents]
