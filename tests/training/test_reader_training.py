"""Tests of what the reader is trained on, and of the measures of its probabilities."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

# ruff: noqa: E402
from precise_rag.encoders.load import minilm_encoder
from precise_rag.rerank.pair_network import SpanNetwork, TransformerConfig
from precise_rag.sentences import split_sentences
from precise_rag.types import Span
from training.answered.fit import auroc, calibration_error
from training.joint_layers import LowerLayers
from training.reader.examples import Window, Windows
from training.reader.questions import Paragraph
from training.reader.train import batch_loss, tokens_of

MILL = "The mill grinds rye. Its wheel was carved by Runa Stell in 1902. Oak was used."
FERRY = "The ferry sails to Velm at nine. It was built by Ilse Brandt in 1911. It carries mail."


def paragraph(text: str, *asked: tuple[str, str]) -> Paragraph:
    spans = [
        (question, [Span(text.index(answer), text.index(answer) + len(answer))]) for question, answer in asked
    ]
    return Paragraph(text, "valley", "test", split_sentences(text), spans)


PARAGRAPHS = [
    paragraph(MILL, ("Who carved the wheel in 1902?", "Runa Stell"), ("Which wood was used?", "Oak")),
    paragraph(FERRY, ("When does the ferry sail to Velm?", "nine")),
]


def test_the_spans_of_a_window_are_the_answers_and_questions_from_elsewhere_have_none() -> None:
    golds = {q.lower().strip("?"): t.text[slice(*s[0])] for t in PARAGRAPHS for q, s in t.asked}
    windows = Windows(PARAGRAPHS, seed=0)
    seen = {True: 0, False: 0}
    for window in (one for _ in range(40) for one in windows.round()):
        assert window.text in MILL or window.text in FERRY
        for question, spans in window.asked:
            seen[bool(spans)] += 1
            gold = golds.get(question.lower().strip("?"))
            if spans and gold:
                assert window.text[slice(*spans[0])] == gold
            elif gold:
                assert gold not in window.text
    assert min(seen.values()) > 20


def test_answers_are_tokens_and_the_first_token_stands_for_none() -> None:
    tokenizer = minilm_encoder().tokenizer
    asked = [("Who?", [Span(MILL.index("Runa"), MILL.index("Runa") + 10)]), ("Why?", [])]
    tokens = tokens_of(Window(MILL, asked), tokenizer)
    assert tokens.starts[1] == tokens.ends[1] == [0]
    (first,), (last,) = tokens.starts[0], tokens.ends[0]
    assert tokenizer.decode(tokens.text[first : last + 1]) == "runa stell"


def test_the_loss_falls_when_the_answer_is_where_the_logits_are() -> None:
    torch.manual_seed(0)
    network = SpanNetwork(TransformerConfig(n_layers=2, n_apart=1))
    tokenizer = minilm_encoder().tokenizer
    asked = [("Who?", [Span(MILL.index("Runa"), MILL.index("Runa") + 10)]), ("Why?", [])]
    batch = [tokens_of(Window(MILL, asked), tokenizer), tokens_of(Window("Yes.", asked[1:]), tokenizer)]
    lower = LowerLayers(network)
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-2)
    losses = []
    for _ in range(12):
        loss = batch_loss(network, lower, batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.7 * losses[0]


def test_auroc_and_calibration_error() -> None:
    assert auroc([0.9, 0.4, 0.4, 0.1], [True, True, False, False]) == pytest.approx(3.5 / 4)
    assert calibration_error([0.95, 0.95, 0.05], [True, False, False]) == pytest.approx((0.9 + 0.05) / 3)
    assert np.isnan(auroc([0.5], [True]))
