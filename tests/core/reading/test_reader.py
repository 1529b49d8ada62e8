from typing import Any

import numpy as np
import pytest

from precise_rag.checkpoints.quantized import dequantized
from precise_rag.checkpoints.saved import load_checkpoint
from precise_rag.encoders.load import minilm_encoder
from precise_rag.errors import InputError
from precise_rag.models.packaged import packaged_model
from precise_rag.reading import AnswerReader, answer_reader, read_answer
from precise_rag.reading.spans import windows
from precise_rag.rerank.pair_network import SpanScorer
from precise_rag.rerank.pair_onnx import OnnxSpanScorer
from precise_rag.rerank.pairs import TransformerConfig
from precise_rag.types import Candidate

FERRY = "The ferry to Velm leaves at nine. It carries mail, bread and eleven passengers."
MILL = "The mill grinds rye for three villages. Its wheel was carved by Runa Stell in 1902."
QUESTION = "Who carved the wheel of the mill?"


def candidate(text: str, doc_id: str = "d", start: int = 0, score: float = 0.5) -> Candidate:
    return Candidate(doc_id, start, start + len(text), text, score, "probability")


def test_torch_and_onnx_runtime_find_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("precise_rag.rerank.pair_network.bfloat16_is_fast", lambda device: False)
    config, tensors = load_checkpoint(packaged_model("reader"))
    sizes = TransformerConfig(n_layers=config["n_layers"], n_apart=config["n_apart"])
    texts = [FERRY, MILL, FERRY * 9, "Nine."]
    ids = [next(windows(0, text, minilm_encoder().tokenizer)).ids for text in texts]
    expected = SpanScorer(sizes, dequantized(tensors), "cpu").logits(QUESTION, ids)
    found = OnnxSpanScorer(sizes, dequantized(tensors), "float32").logits(QUESTION, ids)
    in_int8 = OnnxSpanScorer(sizes, dequantized(tensors)).logits(QUESTION, ids)
    for row, text in enumerate(ids):
        assert expected[row].shape == (len(text), 2)
        np.testing.assert_allclose(found[row], expected[row], atol=5e-3)
        np.testing.assert_allclose(in_int8[row], expected[row], atol=2.5)
        alone = OnnxSpanScorer(sizes, dequantized(tensors), "float32").logits(QUESTION, [text])[0]
        np.testing.assert_allclose(alone, expected[row], atol=5e-3)
    assert OnnxSpanScorer(sizes, dequantized(tensors)).logits(QUESTION, []) == []


def test_an_answer_is_a_slice_of_its_document_and_the_likeliest_comes_first() -> None:
    texts = [candidate(FERRY, "ferry", 100), candidate(MILL, "mill", 7)]
    answers, answered = AnswerReader(min_score=0.0).read(QUESTION, texts)
    assert {one.doc_id for one in answers} == {"ferry", "mill"}
    assert answers[0].text == "Runa Stell"
    assert [one.probability for one in answers] == sorted((o.probability for o in answers), reverse=True)
    for one in answers:
        (text,) = (text for text in texts if text.doc_id == one.doc_id)
        assert text.text[one.start - text.start : one.end - text.start] == one.text
    assert answered is not None
    assert 0.0 < answered < 1.0


def test_what_answers_is_more_probable_than_what_does_not() -> None:
    reader = answer_reader()
    asked = reader.read(QUESTION, [candidate(MILL, score=0.9)]).answered
    other = reader.read("What is the capital of Peru?", [candidate(MILL, score=0.02)]).answered
    assert asked is not None
    assert other is not None
    assert asked > other


def test_scores_that_are_no_probabilities_do_not_count() -> None:
    texts = [Candidate("d", 0, len(MILL), MILL, score, "bm25") for score in (3.0, 9.0)]
    first, second = (answer_reader().read(QUESTION, [text]).answered for text in texts)
    assert first == second is not None


def test_other_scripts_are_not_read() -> None:
    reader = answer_reader()
    assert reader.read("水車は誰が彫りましたか", [candidate(MILL)]) == ((), None)
    assert reader.read(QUESTION, [candidate("水車は今も回る。")]) == ((), None)
    assert {
        one.doc_id
        for one in reader.read(QUESTION, [candidate("水車は今も回る。", "w"), candidate(MILL)]).answers
    } <= {"d"}
    assert read_answer(QUESTION, ["水車は今も回る。", ""]) is None
    assert reader.read(QUESTION, []) == ((), None)


def test_the_answer_of_a_context() -> None:
    found = read_answer(QUESTION, [FERRY, "\ud800 " + MILL])
    assert found is not None
    assert (found.doc_id, found.text) == ("1", "Runa Stell")
    with pytest.raises(InputError, match="texts must be a list"):
        read_answer(QUESTION, MILL)
    with pytest.raises(InputError, match="must not be blank"):
        read_answer(" ", [MILL])


def test_min_score_leaves_improbable_answers_out() -> None:
    assert AnswerReader(min_score=1.0).read(QUESTION, [candidate(MILL)]).answers == ()
    with pytest.raises(InputError, match="min_score"):
        AnswerReader(min_score=2.0)
    former: dict[str, Any] = {"least": 0.5}
    with pytest.raises(InputError, match="no argument 'least'; write min_score="):
        AnswerReader(**former)
