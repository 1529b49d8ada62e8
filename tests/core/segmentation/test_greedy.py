from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from precise_rag import Document
from precise_rag.encoders import load_encoder
from precise_rag.encoders.geometry import geometry_of
from precise_rag.segmentation import GreedySegmenter
from precise_rag.sentences import split_sentences
from precise_rag.testing import HashEncoder
from precise_rag.types import FloatArray, SentenceTable
from support.segmentation import any_text


def texts(chunks) -> list[str]:
    return [chunk.text for chunk in chunks]


def test_a_chunk_ends_where_the_cosine_is_below_the_threshold() -> None:
    text = "One. Two. Three. Four."
    encoder = load_encoder("all-MiniLM-L6-v2")
    rows, spans = np.float32([[1, 0], [0.8, 0.6], [0, 1], [0, 1]]), np.array(split_sentences(text))
    table = SentenceTable("t", spans, np.zeros(4, dtype=np.int64), np.ones(4, dtype=np.int64), rows)

    def cut(**options: Any) -> list[str]:
        return texts(GreedySegmenter(encoder, **options).segment(text, table))

    def words(texts: Sequence[str]) -> list[int]:
        return [len(text.split()) for text in texts]

    assert cut(threshold=0.7) == ["One. Two. ", "Three. Four."]
    assert cut(threshold=0.7, max_chars=8) == ["One. ", "Two. ", "Three. ", "Four."]
    assert cut(threshold=0.5) == [text]
    for measure in (words, lambda text: len(text.split())):
        assert cut(threshold=0.5, max_chars=3, length_function=measure) == ["One. Two. Three. ", "Four."]


@settings(deadline=None)
@example(text="  0\n0", limit=1, joint=0, threshold=-1)
@given(
    text=any_text, limit=st.integers(1, 600), joint=st.integers(0, 9), threshold=st.sampled_from([-1, 0.2])
)
def test_chunks_tile_the_text_and_keep_the_limit(text: str, limit: int, joint: int, threshold: float) -> None:
    """Also where a text is longer than its parts, as with a tokenizer that reads across a gap."""

    def length(texts: Sequence[str]) -> list[int]:
        return [len(t) + joint * (len(t) // 7) for t in texts]

    measure = length if joint else None
    greedy = GreedySegmenter(HashEncoder(), threshold=threshold, max_chars=limit, length_function=measure)
    chunks = greedy.segment(text)
    assert "".join(texts(chunks)) == (text if text.strip() else "")
    assert all(length([chunk.text]) <= [limit] or len(chunk.text) == 1 for chunk in chunks)
    assert chunks == next(iter(greedy.segment_many([text])))


def test_several_texts_are_encoded_together() -> None:
    sizes: list[int] = []

    class Counting(HashEncoder):
        def encode(self, texts: Sequence[str], **options: Any) -> FloatArray:
            sizes.append(len(texts))
            return super().encode(texts, **options)

    encoder, names = Counting(), ("cat", "owl", "fox")
    documents = [Document(name, f"The {name} sat. Two dogs. The {name} ran.") for name in names]
    geometry_of(encoder)  # is measured once, by sentences of its own
    sizes.clear()
    greedy = GreedySegmenter(encoder, threshold=0.2)
    many = list(greedy.segment_many(iter(documents), show_progress=True))
    assert sizes == [7]
    assert many == [greedy.segment(document) for document in documents]
