import random
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from precise_rag.candidate_filters import RedundancyFilter
from precise_rag.candidate_filters.redundancy import similar_earlier
from precise_rag.encoders.geometry import geometry_of
from precise_rag.stems import read_words
from precise_rag.testing import HashEncoder
from precise_rag.types import Candidate, FloatArray
from support.documents import read_cases

COPIES = read_cases("filters.json", "copies")


def candidates(texts: Sequence[str], scores: Sequence[float] | None = None) -> list[Candidate]:
    scores = scores or [1.0 - i / 100 for i in range(len(texts))]
    return [
        Candidate(f"d{i}", 0, len(text), text, score, "probability", metadata={"page": i})
        for i, (text, score) in enumerate(zip(texts, scores, strict=True))
    ]


def test_of_copies_the_best_is_kept_and_the_others_name_what_they_repeat() -> None:
    given_ = candidates(COPIES)
    selection = RedundancyFilter().filter(given_)
    assert selection.kept == (given_[0], given_[1])
    assert selection.reasons == (
        "repeats no better candidate",
        "repeats no better candidate",
        "repeats d0:0-64 (cosine 1.00 > 0.9)",
    )
    assert selection.decisions[2].candidate.metadata == {"page": 2}
    selection = RedundancyFilter().filter(candidates(COPIES, [0.2, 0.5, 0.9]))
    assert [c.doc_id for c in selection.kept] == ["d2", "d1"]
    assert selection.reasons[2].startswith("repeats d2:0-65")
    assert len(RedundancyFilter().filter(candidates(["", "...", "word"])).kept) == 3
    assert RedundancyFilter().filter([]).decisions == ()


@pytest.mark.parametrize("changed", read_cases("filters.json", "no repetitions"))
def test_another_word_number_or_order_is_not_a_repetition(changed: str) -> None:
    text = "Sales of the northern branch rose by 12 percent in the last quarter of 2019, says the report."
    for pair in ([text, changed], [changed, text]):
        assert len(RedundancyFilter(similarity_threshold=0.5).filter(candidates(pair)).kept) == 2
    below = [replace(one, above=(one.doc_id,)) for one in candidates([text, text])]
    assert len(RedundancyFilter().filter(below).kept) == 2


@pytest.mark.parametrize(("one", "other"), read_cases("filters.json", "signs"))
def test_another_sign_is_not_a_repetition(one: str, other: str) -> None:
    texts = [f"Tonight the gauge in the greenhouse of Ada is set to {value}." for value in (one, other, one)]
    assert len(RedundancyFilter().filter(candidates(texts)).kept) == 2


@pytest.mark.parametrize(
    ("code", "other"), [("10000", "1000"), ("E4200", "E420"), ("b12es", "b12"), ("0xdeade", "0xdead")]
)
def test_another_code_is_not_a_repetition(code: str, other: str) -> None:
    texts = [f"The part {one} costs nine euros and is kept in the second hall." for one in (code, other)]
    assert len(RedundancyFilter().filter(candidates(texts)).kept) == 2
    (stem,), (another,) = (read_words(one).stems for one in (code, other))
    assert stem != another


def test_a_piece_inside_a_kept_piece_repeats_it() -> None:
    outer = Candidate("d", 0, 30, "Rain fell. The river rose fast", 0.9, "probability")
    inner = Candidate("d", 11, 30, "The river rose fast", 0.8, "probability")
    selection = RedundancyFilter().filter([inner, outer])
    assert selection.kept == (outer,)
    assert selection.reasons[1] == "repeats d:0-30, which contains it"
    assert len(RedundancyFilter().filter([inner, replace(outer, score=0.1)]).kept) == 2


class TwoTopics(HashEncoder):
    """Puts texts about ferries on one axis and all others on another, 0.6 of the way between."""

    def encode(self, texts: Sequence[str], *, show_progress: bool = False) -> FloatArray:
        rows = [[1.0, 0.0] if "ferry" in text else [0.6, 0.8] for text in texts]
        return np.array(rows, dtype=np.float32)

    def encode_queries(self, queries: Sequence[str]) -> FloatArray:
        return self.encode(queries)


def test_with_an_encoder_its_cosine_decides_among_pairs_that_share_words() -> None:
    texts = read_cases("filters.json", "near-copies")
    selection = RedundancyFilter(encoder=TwoTopics(2)).filter(candidates(texts))
    assert [d.kept for d in selection.decisions] == [True, False, True, True]
    assert selection.reasons[1] == "repeats d0:0-39 (cosine 1.00 > 0.9)"
    looser = RedundancyFilter(encoder=TwoTopics(2), similarity_threshold=0.5).filter(candidates(texts))
    assert [d.kept for d in looser.decisions] == [True, False, False, True]


TEXTS = st.lists(
    st.lists(st.sampled_from(["ash", "birch", "cedar", "elm", "fir", "oak"]), max_size=6), max_size=12
)


@given(TEXTS, st.sampled_from([0.1, 0.3, 0.5, 0.7, 0.9, 1.0]))
def test_similar_texts_agree_with_comparing_all_of_them(words: list[list[str]], at_least: float) -> None:
    texts = [" ".join(w) for w in words]
    everything = similar_earlier(texts, 1e-9)
    for found, cosines in zip(similar_earlier(texts, at_least), everything, strict=True):
        assert found == {other: cosine for other, cosine in cosines.items() if cosine >= at_least}
    for row, cosines in enumerate(everything):
        for other in range(row):
            assert (other in cosines) == bool(set(words[row]) & set(words[other]))
            if sorted(words[row]) == sorted(words[other]) != []:
                assert cosines[other] == pytest.approx(1.0)


@given(TEXTS, st.integers(0, 2**32))
def test_input_order_does_not_matter_and_nothing_kept_repeats(words: list[list[str]], seed: int) -> None:
    scored = candidates([" ".join(w) for w in words])
    shuffled = random.Random(seed).sample(scored, len(scored))
    selection = RedundancyFilter(similarity_threshold=0.8).filter(shuffled)
    assert selection == RedundancyFilter(similarity_threshold=0.8).filter(scored)
    ids = {c.id for c in selection.kept}
    for decision in selection.decisions:
        if not decision.kept:
            assert decision.reason.split()[1].strip(",") in ids


@pytest.mark.parametrize("text", ["Room 12", "Moderated : subscribers", "Team: sales, purchasing and post"])
def test_equal_fields_of_two_records_say_two_things(text: str) -> None:
    assert len(RedundancyFilter().filter(candidates([text, text])).kept) == 2
    sentence = f"The staff of the mill knows that {text} is where it stays."
    assert len(RedundancyFilter().filter(candidates([sentence, sentence])).kept) == 1


def test_equal_texts_are_encoded_once() -> None:
    ferry = "A ferry leaves at noon."
    texts = [ferry, "The gate opens at dusk.", ferry, ferry]
    encoder = HashEncoder()
    geometry_of(encoder)  # is measured once, by sentences of its own
    encoder.calls.clear()
    selection = RedundancyFilter(encoder=encoder).filter(candidates(texts))
    assert [c.doc_id for c in selection.kept] == ["d0", "d1"]
    assert encoder.calls == [ferry]
