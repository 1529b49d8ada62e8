from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from precise_rag import Document, Segmenter
from precise_rag.encoders import load_encoder
from precise_rag.segmentation import SegmenterOptions
from precise_rag.segmentation.long_sentences import cut_long, cut_recounted, inside_words
from precise_rag.segmentation.segmenter import gap_gains, same_scores
from precise_rag.tokens import counting
from precise_rag.types import FloatArray
from support.segmentation import any_text


class ScriptedModel:
    """Finds a boundary after each sentence with a bar; a word is a token."""

    weights_sha256 = "0" * 64
    encoder = None

    def predict(self, sentences, table=None) -> FloatArray:
        logits = np.array([[3.0, 3.0] if "|" in sentence else [-3.0, -3.0] for sentence in sentences[:-1]])
        return logits.reshape(-1, 2).astype(np.float32)

    def count_tokens(self, texts):
        return np.array([max(len(text.split()), 1) for text in texts])


def scripted(**options: object) -> Segmenter:
    free = {"min_tokens": 0, "target_tokens": 0}
    return Segmenter(ScriptedModel(), name="scripted", options=SegmenterOptions(**{**free, **options}))


def texts(chunks) -> list[str]:
    return [chunk.text for chunk in chunks]


def test_cuts_where_the_model_says_and_chunks_carry_the_document() -> None:
    text = "One two. Three four|. Five six.\n\nSeven eight."
    assert texts(scripted().segment(text)) == ["One two. Three four|. ", "Five six.\n\nSeven eight."]
    assert texts(scripted(paragraphs="hard").segment(text))[1:] == ["Five six.\n\n", "Seven eight."]
    short = ["One two. ", "Three four|. ", "Five six.\n\n", "Seven eight."]
    assert texts(scripted(max_tokens=2).segment(text)) == short
    assert texts(scripted(min_tokens=5).segment(text)) == [text]
    assert texts(scripted(coarse_tokens=2).segment(text))[0] == "One two. "
    document = Document("d", "One two|. Three.", {"title": "T", "tags": []})
    first, second = scripted().segment(document)
    assert (first.id, first.n_tokens, first.metadata) == ("d:0-10", 2, {"title": "T", "tags": []})
    assert first.metadata["tags"] is not document.metadata["tags"] is not second.metadata["tags"]


def test_threshold_and_paragraph_evidence_shift_the_score() -> None:
    logits = np.zeros((2, 2), dtype=np.float32)
    gains = gap_gains(logits, np.array([False, True]), 0.55)
    scores = same_scores(gains, 0.55)
    assert scores[0] == pytest.approx(0.5)
    assert scores[1] < scores[0] < 0.55
    assert (gains > 0).tolist() == (scores < 0.55).tolist() == [True, True]


def uneven(text: str) -> int:
    """A measure that is neither additive nor monotone: whole texts often count more than their parts."""
    return len(text) // 4 + 3 * (len(text) % 5 == 0) + text.count("aa") if text.strip() else 0


_MARKS = ["a", "bb", "unbelievably", "天地", ".", "!?", "1.5"]
WORDS = st.lists(
    st.sampled_from([*_MARKS, "x" * 90, "\n\n", " ", "  \t", *"\x0b\x1c\x85\u2028\u200b\u0301각"]),
    max_size=80,
)


@settings(deadline=None)
@example(text="", max_tokens=6, hard=False, measure=None)
@example(text=" \n\n\t ", max_tokens=6, hard=False, measure=None)
@example(text="天地 \x1c", max_tokens=1, hard=False, measure=None)
@example(text=" 01:01:000000", max_tokens=6, hard=False, measure=None)
@example(text="A. \x1c" * 9 + "unbelieva\x1cbly. \x1e" * 9, max_tokens=9, hard=True, measure=None)
@example(text="a\x1c\n\n", max_tokens=1, hard=False, measure=None)
@example(text="\n\n\x1ca", max_tokens=1, hard=False, measure=None)
@example(text="word " * 40 + "end. Next one.", max_tokens=8, hard=False, measure=None)
@given(
    text=any_text | WORDS.map("".join) | WORDS.map(" ".join),
    max_tokens=st.integers(1, 60),
    hard=st.booleans(),
    measure=st.sampled_from([None, uneven, lambda texts: [*map(uneven, texts)]]),
)
def test_chunks_tile_the_text_and_keep_the_limit(
    small: Segmenter, text: str, max_tokens: int, hard: bool, measure: Any
) -> None:
    limit = max_tokens + 7 if measure else max_tokens  # as one character may count 4
    options = SegmenterOptions(max_tokens=limit, paragraphs="hard" if hard else "soft")
    segmenter = Segmenter(small.model, name="small", options=options, count_tokens=measure)
    chunks = segmenter.segment(text)
    assert "".join(texts(chunks)) == (text if text.strip() else "")
    blank = [not chunk.text.strip() for chunk in chunks]
    for n, chunk in enumerate(chunks):
        # White space that exceeds the limit, alone or as what is beside it does, is a part of its own.
        over = (n > 0 and blank[n - 1]) or any(c.n_tokens > limit for c in chunks[max(n - 1, 0) : n + 2])
        assert not blank[n] or measure or chunk.n_tokens or over
        assert chunk.text == text[chunk.start : chunk.end]
        counted = counting(measure or load_encoder().count_tokens)([chunk.text])[0]
        assert chunk.n_tokens == counted
        assert counted <= limit or len(chunk.text.strip()) < 2


@settings(deadline=None, max_examples=20)
@given(documents=st.lists(any_text, max_size=6))
def test_chunks_are_the_same_alone_in_a_batch_and_on_threads(small: Segmenter, documents: list[str]) -> None:
    alone = [small.segment(text) for text in documents]
    assert list(small.segment_many(documents)) == alone
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(small.segment, documents)) == alone


@pytest.mark.slow
def test_crumbs_of_a_long_text_are_read_together(small: Segmenter) -> None:
    text = "A. B? C! " * 6000
    found = small.explain(text)
    assert 700 < len(found.spans) < 900
    chunks = small.segment(text)
    assert "".join(chunk.text for chunk in chunks) == text
    assert len(chunks) > 10
    assert all(chunk.n_tokens <= small.options.max_tokens for chunk in chunks)
    assert len(small.explain(text[:900]).spans) == 200
    hard = Segmenter.from_pretrained("small", paragraphs="hard")
    assert len(hard.explain("a\n\n" * 10_001).spans) == 10_001


def test_long_sentences_are_halved_between_words_and_white_space_is_split_off_where_it_does_not_fit() -> None:
    text = "one two three four. five"
    spans, counts = np.array([[0, 20], [20, 24]]), np.array([4, 1])
    rows, lengths, owners = cut_long(text, spans, counts, 2, counting(lambda t: len(t.split())))
    assert [text[a:b] for a, b in rows.tolist()] == ["one two ", "three four. ", "five"]
    assert (lengths.tolist(), owners.tolist()) == ([2, 2, 1], [0, 0, 1])

    def pieces(text: str, limit: int) -> list[str]:
        rows = cut_long(text, np.array([[0, len(text)]]), np.array([len(text)]), limit, counting(len))[0]
        return [text[a:b] for a, b in rows.tolist()]

    assert pieces(" 01:01:000000", 7) == [" 01:01:", "000000"]
    assert pieces("gas" + " " * 6, 4) == ["gas", "   ", "   "]
    assert pieces("a  ", 1) == ["a", " ", " "]


def test_a_chunk_is_measured_as_a_whole_only_where_its_parts_meet_inside_a_word() -> None:
    text = "one twothree four"
    spans = np.array([[0, 7], [7, 13], [13, 17]])
    measured: list[str] = []

    def count(texts: Sequence[str]) -> list[int]:
        measured.extend(texts)
        return [9 for _ in texts]

    unsure = inside_words(text, spans)
    assert unsure.tolist() == [True, False]
    counts, gains = np.array([2, 2, 1]), np.array([-1.0, 1.0], np.float32)
    none = np.zeros(0, dtype=np.int64)
    cuts, lengths = cut_recounted(text, spans, counts, gains, none, unsure, 5, count)
    assert (cuts.tolist(), lengths.tolist()) == ([0, 1], [2, 2, 1])
    assert measured == [text, "one twothree "]


def test_many_cuts_take_few_rounds() -> None:
    n = 2000
    spans = np.stack([np.arange(n), np.arange(1, n + 1)], axis=1)
    read: list[int] = []

    def count(texts: Sequence[str]) -> list[int]:
        read.append(sum(map(len, texts)))
        return [len(text) if len(text) > 1 else 0 for text in texts]

    gains = -np.arange(n - 1, dtype=np.float32)
    none = np.zeros(0, dtype=np.int64)
    counts, unsure = np.zeros(n, dtype=np.int64), np.ones(n - 1, dtype=np.bool_)
    _, lengths = cut_recounted("x" * n, spans, counts, gains, none, unsure, 10, count)
    assert lengths.max() <= 10
    assert len(read) < 30
