from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from precise_rag.errors import InputError
from precise_rag.tokens import (
    estimate_in_english,
    estimate_prompt_tokens,
    estimate_token_counts,
    estimate_tokens,
)
from precise_rag.types import Candidate, Chunk, Document, Message, Selection, best_first
from support.documents import read_cases


def candidate(score: float, start: int = 0, doc_id: str = "d") -> Candidate:
    return Candidate(doc_id, start, start + 5, "text", score, "probability")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Document("", "text"), "id must be a non-empty string, got ''"),
        (lambda: Document("d", b"text"), "text must be a string, got bytes"),
        (lambda: candidate(float("nan")), "got NaN"),
        (lambda: Candidate("d", 0, 5, "text", 0.5, "percent"), "scale must be .*'logit'.*, got 'percent'"),
    ],
)
def test_wrong_values_are_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()


def test_candidates_have_ids_of_document_and_offsets_and_python_floats() -> None:
    assert Chunk("d", 2, 7, "text").id == candidate(0.5, 2).id == "d:2-7"
    assert type(candidate(np.float32(0.5)).score) is float


def test_best_first_orders_ties_by_document_and_offset() -> None:
    ordered = [candidate(0.9, 9, "b"), candidate(0.5, 1, "a"), candidate(0.5, 4, "a"), candidate(0.5, 0, "b")]
    assert best_first(ordered[::-1]) == ordered


def test_a_selection_numbers_its_decisions_from_1_and_a_later_stage_decides_on_what_was_kept() -> None:
    good, bad = candidate(0.9), candidate(0.1, 5)
    selection = Selection.of([(good, True, "good"), (bad, False, "bad")])
    assert [decision.rank for decision in selection.decisions] == [1, 2]
    assert (selection.kept, selection.reasons) == ((good,), ("good", "bad"))
    assert Selection.keep_all((bad, good), "all").kept == (bad, good)
    fused = Selection.of([(replace(good, score_scale="rank"), False, "1"), (bad, True, "2")])
    assert fused.then(Selection.keep_all([bad], "3")).reasons == ("3", "1")
    first, second, third = candidate(0.9), candidate(0.5, 5), candidate(0.1, 9)
    earlier = Selection.of([(first, True, "a"), (second, False, "b"), (third, True, "c")])
    both = earlier.then(Selection.of([(first, False, "d"), (third, True, "e")]))
    assert [(d.rank, d.candidate, d.kept, d.reason) for d in both.decisions] == [
        (1, first, False, "d"),
        (2, second, False, "b"),
        (3, third, True, "e"),
    ]


@pytest.mark.parametrize(("text", "n_tokens"), read_cases("tokens.json", "estimated"))
def test_words_letters_and_marks_are_counted(text: str, n_tokens: int) -> None:
    assert estimate_tokens(text) == n_tokens


@pytest.mark.parametrize(("text", "n_tokens"), read_cases("tokens.json", "in English"))
def test_other_scripts_count_as_the_same_in_english(text: str, n_tokens: int) -> None:
    assert estimate_in_english(text) == n_tokens


def test_several_texts_and_messages_are_counted() -> None:
    assert estimate_token_counts(["", "Cat naps.", "retrieval"]).tolist() == [0, 3, 2]
    assert estimate_token_counts([]).shape == (0,)
    assert estimate_prompt_tokens((Message("user", "a" * 40),)) == 11
    one = estimate_prompt_tokens([Message("user", "Cat naps.")])
    assert one > 3
    assert estimate_prompt_tokens([Message("user", "Cat naps.")] * 2) == 2 * one
