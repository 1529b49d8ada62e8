from itertools import pairwise

import numpy as np
import pytest

from precise_rag.encoders.load import minilm_encoder
from precise_rag.reading.spans import BestSpan, windows
from precise_rag.rerank.pairs import CANDIDATE_TOKENS
from precise_rag.types import Span

TEXT = "Élise's ferry leaves Velm at 9:40, in unforeseeableness."


def logits_of(length: int, **peaks: int) -> np.ndarray:
    """Logits of 0 with 5 where an answer begins and ends."""
    found = np.zeros((length, 2), dtype=np.float32)
    found[peaks["begin"], 0] = found[peaks["end"], 1] = 5.0
    return found


def test_the_best_span_is_a_slice_of_the_text_and_its_margin_is_over_no_answer() -> None:
    (window,) = windows(3, TEXT, minilm_encoder().tokenizer)
    assert window.number == 3
    texts = [TEXT[start:end] for start, end in window.offsets]
    logits = logits_of(len(window.ids), begin=texts.index("9"), end=texts.index("40"))
    logits[0] = [1.0, 0.5]
    assert window.best(logits) == BestSpan((TEXT.index("9:40"), TEXT.index("9:40") + 4), pytest.approx(8.5))


def test_an_answer_neither_begins_nor_ends_inside_a_word_nor_outside_the_text() -> None:
    (window,) = windows(0, TEXT, minilm_encoder().tokenizer)
    texts = [TEXT[start:end] for start, end in window.offsets]
    pieces = [row for row, piece in enumerate(texts) if piece and piece in "unforeseeableness"]
    assert len(pieces) > 2
    for row in range(len(texts)):
        span = window.best(logits_of(len(texts), begin=row, end=row)).span
        assert 0 <= span.start < span.end <= len(TEXT)
        for edge in span:
            inside = TEXT[max(edge - 1, 0) : edge + 1]
            assert not (len(inside) == 2 and inside.isalnum())


def test_an_answer_does_not_end_before_it_begins() -> None:
    (window,) = windows(0, TEXT, minilm_encoder().tokenizer)
    best = window.best(logits_of(len(window.ids), begin=len(window.ids) - 2, end=1))
    assert best.span.start < best.span.end
    assert best.margin == 5.0


def test_a_probable_sentence_draws_the_answer_to_it() -> None:
    text = "It left at nine. It left at ten."
    (window,) = windows(0, text, minilm_encoder().tokenizer)
    texts = [text[start:end] for start, end in window.offsets]
    logits = np.zeros((len(texts), 2), dtype=np.float32)
    for word, peak in (("nine", 5.0), ("ten", 4.0)):
        logits[texts.index(word)] = peak
    first, second = Span(0, 17), Span(17, 32)
    assert text[slice(*window.best(logits).span)] == "nine"
    assert text[slice(*window.best(logits, {first: 0.5, second: 0.5}).span)] == "nine"
    drawn = window.best(logits, {first: 0.1, second: 0.9})
    assert text[slice(*drawn.span)] == "ten"
    assert drawn.margin == pytest.approx(8.0)
    assert drawn.prior == pytest.approx(np.log(0.9), abs=1e-6)
    assert window.best(logits, {second: 0.9}).prior == pytest.approx(np.log(0.9), abs=1e-6)
    assert drawn.score < drawn.margin


def test_long_texts_are_read_in_windows_that_overlap_and_cover_them() -> None:
    text = "The ferry leaves the port of Velm at nine in the morning. " * 60
    found = list(windows(0, text, minilm_encoder().tokenizer))
    assert len(found) > 2
    assert all(len(window.ids) <= CANDIDATE_TOKENS for window in found)
    assert found[0].offsets[1, 0] == 0
    assert found[-1].offsets[-2, 1] == len(text.rstrip())
    for before, after in pairwise(found):
        assert after.offsets[1, 0] < before.offsets[-2, 1]


def test_a_text_in_another_language_has_no_window() -> None:
    german = (
        "Die Fähre nach Velm verlässt den Hafen morgens um neun Uhr und befördert Briefe, Brötchen und elf "
        "Fahrgäste, deren Gepäckstücke unverzüglich verstaut werden."
    )
    assert list(windows(0, german, minilm_encoder().tokenizer)) == []


def test_a_text_without_tokens_has_no_window() -> None:
    assert list(windows(0, " \n", minilm_encoder().tokenizer)) == []
