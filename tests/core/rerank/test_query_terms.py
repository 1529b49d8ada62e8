import math

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


def test_pairs_and_windows_see_what_is_close_together(idf_table: np.ndarray) -> None:
    terms = QueryTerms.of("Wend bridge", idf_table)
    near = terms.positions(read_words("The bridge on the Wend"))
    far = terms.positions(read_words(f"The bridge {'so ' * 20} the Wend"))
    assert (terms.pair_coverage(near), terms.pair_coverage(far)) == pytest.approx((1.0, 0.0))
    assert (terms.window_coverage(near), terms.window_coverage(far)) == pytest.approx((1.0, 8 / 12))
    assert math.isnan(QueryTerms.of("bridge", idf_table).pair_coverage(near))


def test_names_are_covered_or_unknown(idf_table: np.ndarray) -> None:
    terms = QueryTerms.of("Is the Wend a river?", idf_table)
    with_name, without = (terms.positions(read_words(text)) for text in ("Along the Wend", "A river"))
    assert (terms.name_coverage(with_name), terms.name_coverage(without)) == pytest.approx((1.0, 0.0))
    assert math.isnan(QueryTerms.of("a river", idf_table).name_coverage(with_name))


def test_answer_type_looks_for_the_number_or_name_that_is_asked_for(idf_table: np.ndarray) -> None:
    year, name = read_words("It opened in 1931."), read_words("It was opened by Ann Lee.")
    when = QueryTerms.of("When was the bridge opened?", idf_table)
    assert (when.answer_type(year), when.answer_type(name)) == (1.0, 0.0)
    who = QueryTerms.of("Who opened the bridge?", idf_table)
    assert (who.answer_type(year), who.answer_type(name)) == (0.0, 1.0)
    assert math.isnan(QueryTerms.of("Why a bridge?", idf_table).answer_type(year))


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
