import pytest
from hypothesis import given
from hypothesis import strategies as st

from precise_rag.candidate_filters.tfidf import similar_earlier, tfidf_vectors

TEXTS = st.lists(
    st.lists(st.sampled_from(["ash", "birch", "cedar", "elm", "fir", "oak"]), max_size=6), max_size=12
)


@given(TEXTS, st.sampled_from([0.1, 0.3, 0.5, 0.7, 0.9, 1.0]))
def test_similar_pairs_agree_with_comparing_all(words: list[list[str]], at_least: float) -> None:
    vectors = tfidf_vectors([" ".join(w) for w in words])
    for row, found in enumerate(similar_earlier(vectors, at_least)):
        exact = {
            other: sum(w * vectors[other].get(t, 0.0) for t, w in vectors[row].items())
            for other in range(row)
        }
        surely = {o for o, c in exact.items() if c > at_least + 1e-9}
        maybe = {o for o, c in exact.items() if c >= at_least - 1e-9}
        assert surely <= set(found) <= maybe
        assert all(found[o] == pytest.approx(exact[o]) for o in found)
