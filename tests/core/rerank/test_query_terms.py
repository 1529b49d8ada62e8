import numpy as np
import pytest

from precise_rag.rerank.query_terms import QueryTerms
from precise_rag.stems import read_words, stem


def test_terms_have_their_rarity_and_leave_out_words_that_shape_a_question(idf_table: np.ndarray) -> None:
    assert stem("bridge") == "bridg"
    terms = QueryTerms.of("When was the Wend bridge opened?", idf_table)
    assert terms.rarity == pytest.approx({"wend": 8.0, "bridg": 4.0, "open": 2.0})
    assert terms.names == {"wend"}
    assert (terms.total, terms.rarest) == pytest.approx((14.0, 8.0))
    assert terms.coverage(["bridg", "open"]) == pytest.approx(6 / 14)
    assert list(QueryTerms.of("Who was that?", idf_table).rarity) == ["who", "was", "that"]


def test_positions_are_counted_in_words(idf_table: np.ndarray) -> None:
    terms = QueryTerms.of("Wend bridge", idf_table)
    assert terms.positions(read_words("A bridge over the Wend, a bridge.")) == {"bridg": [1, 6], "wend": [4]}


def test_close_pairs_are_those_of_all_positions(idf_table: np.ndarray) -> None:
    terms = QueryTerms.of("Wend bridge", idf_table)
    first, second = terms.rarity
    for a, b in [([0], [3]), ([0], [4]), ([0, 9, 20], [5, 13, 17]), ([50], [1, 2, 3, 47]), ([], [1])]:
        close = any(abs(i - j) <= 3 for i in a for j in b)
        assert terms.pair_coverage({first: a, second: b}) == pytest.approx(float(close))


def test_among_texts_a_term_weighs_less_the_more_of_them_have_it(idf_table: np.ndarray) -> None:
    terms = QueryTerms.of("Wend bridge", idf_table)
    texts = [terms.positions(read_words(text)) for text in ["A bridge"] * 15 + ["A ferry"] * 5]
    here = terms.among(texts)
    assert here.rarity["wend"] == pytest.approx(8.0)
    assert here.rarity["bridg"] == pytest.approx(4.0 * (1 - (15 / 21) ** 0.5))
    assert here.coverage(["wend"]) > terms.coverage(["wend"])
    repeats = terms.positions(read_words("Wend bridge"))
    assert terms.among([repeats, repeats, *texts[2:]]).rarity["wend"] == pytest.approx(8.0)
