"""Retrievers over the frameworks' own stores."""

import pytest

from precise_rag.facts import read_facts
from support.frameworks import FRAMEWORKS, each_framework
from support.velm import TEXTS, each_question


@each_question
def test_a_filled_store_gives_the_same_sentences(question):
    found = []
    for framework in FRAMEWORKS.values():
        pieces = [framework.piece(text, f"c{i}") for i, text in enumerate(TEXTS.values()) if text.strip()]
        sent = framework.find(framework.retriever.from_store(framework.stock(pieces)), question)
        found.append({framework.text(piece): read_facts(piece)["score"] for piece in sent})
    assert found[0]
    assert list(found[0]) == list(found[1])
    assert found[0] == pytest.approx(found[1], abs=1e-6)


@each_framework
def test_chunks_that_repeat_the_question_do_not_hide_the_answer_in_a_store(framework):
    question = "Who built the town clock?"
    pieces = [framework.piece(f"{question}{' ' * n}", f"loud {n}") for n in range(15)]
    pieces.append(framework.piece("It was built in 1911 by Ada Brandt, the clock of the town.", "true"))
    make = framework.retriever.from_store
    found = framework.find(make(framework.stock(pieces), fetch_k=5, reranker="packaged"), question)
    assert any("Ada Brandt" in framework.text(piece) for piece in found)
