"""What a search of sentences returns: sentences, passages, merged neighbours, within a token limit."""

import pytest

from precise_rag.index import HybridIndex, SentenceContextIndex
from precise_rag.testing import HashEncoder
from precise_rag.types import Document

STORY = Document("story", "A cat sits. A cat runs. It rained.\n\nThe sun rose. A cat sleeps.")


def test_a_passage_has_the_score_of_its_best_sentence() -> None:
    index = SentenceContextIndex.build([STORY], HashEncoder())
    sentence = index.search("cat runs", 1)[0]
    passage = index.search("cat runs", 5, returns="passage")
    assert [p.text for p in passage] == ["A cat sits. A cat runs. It rained.", "The sun rose. A cat sleeps."]
    assert passage[0].score == pytest.approx(sentence.score)
    assert [p.n_tokens for p in passage] == [8, 6]


def test_neighbours_are_merged_in_document_order() -> None:
    index = HybridIndex.build([STORY], HashEncoder())
    single = {c.text: c for c in index.search("cat sits runs", 3, alpha=1.0, returns="sentence")}
    assert set(single) == {"A cat sits.", "A cat runs.", "A cat sleeps."}
    index = HybridIndex.build([STORY], HashEncoder(), passages="paragraphs")
    merged = index.search("cat sits runs", 3, alpha=1.0, returns="sentence", merge_adjacent=True)
    assert [m.text for m in merged] == ["A cat sits. A cat runs.", "A cat sleeps."]
    best = max(single["A cat sits."].score, single["A cat runs."].score)
    assert merged[0].score == pytest.approx(best)
    assert merged[0].n_tokens == 6


def test_mixed_returns_the_passage_of_the_best_sentence_and_then_single_sentences() -> None:
    index = HybridIndex.build([STORY], HashEncoder(), passages="paragraphs")
    mixed = index.search("cat sleeps", 3)
    assert mixed[0].text == "The sun rose. A cat sleeps."
    assert mixed[0].n_tokens == 6
    assert {m.text for m in mixed[1:]} == {"A cat sits.", "A cat runs."}
    assert [m.score for m in mixed] == sorted((m.score for m in mixed), reverse=True)
    assert [m.text for m in index.search("cat sleeps", 1)] == [mixed[0].text]


def test_candidates_that_exceed_max_tokens_are_left_out() -> None:
    index = SentenceContextIndex.build([STORY], HashEncoder())
    full = index.search("cat", 5)
    assert sum(c.n_tokens or 0 for c in full) == 14
    kept = index.search("cat", 5, max_tokens=8)
    assert sum(c.n_tokens or 0 for c in kept) <= 8
    assert [c.id for c in kept] == [c.id for c in full if c.id in {k.id for k in kept}]
    assert index.search("cat", 5, max_tokens=1) == []
