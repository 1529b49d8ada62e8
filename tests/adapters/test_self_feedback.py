"""The self-feedback components answer as the core does, over pipelines and over stock retrievers."""

import json

import pytest

from precise_rag import Document, GradientSelector, InputError, PreciseRAG
from precise_rag.errors import LLMError
from precise_rag.index import HybridIndex
from precise_rag.testing import HashEncoder, ScriptedLLM
from precise_rag.tokens import estimate_tokens
from support.frameworks import each_framework
from support.velm import TEXTS, assert_same_excerpts, verdict

QUESTION = "Who carved the wheel of the mill?"
INDEX = HybridIndex.build([Document(name, text) for name, text in TEXTS.items()], HashEncoder())


def ours(framework, llm, **options):
    """The component over a pipeline with an index of ours."""
    return framework.loop.from_rag(PreciseRAG(INDEX, **options), llm=llm)


def stock(framework, llm, **options):
    """The component over a stock retriever of whole texts."""
    pieces = [framework.piece(text, name) for name, text in TEXTS.items() if text.strip()]
    return framework.loop(framework.stock_retriever(framework.stock(pieces), 4), llm, **options)


@each_framework
def test_answers_sources_and_rounds_are_those_of_the_core(framework):
    replies = ["Nobody.", verdict(3, 1), "Runa Stell.", verdict(8, -1), "never asked"]
    options = {"selector": GradientSelector(min_k=2, ratio=1.0, min_score=0.02, min_keep=3)}
    expected = PreciseRAG(INDEX, ScriptedLLM(replies), **options).answer(QUESTION)
    assert (expected.text, len(expected.rounds)) == ("Runa Stell.", 2)
    found = framework.answer(ours(framework, ScriptedLLM(replies), **options), QUESTION)
    assert (found.text, found.facts["score"]) == (expected.text, expected.judgement.score)
    assert (found.facts["kind"], found.facts["note"]) == ("generated", expected.note)
    assert found.facts["trace"]["rounds"] == [turn.to_dict() for turn in expected.trace.rounds]
    assert len(json.loads(json.dumps(found.facts["trace"]))["calls"]) == 4
    assert_same_excerpts(framework, found.sources, expected.passages)


@each_framework
@pytest.mark.parametrize("make", [ours, stock])
@pytest.mark.parametrize("adjustment", [1, -1])
def test_more_and_less_change_what_is_sent(framework, make, adjustment):
    low = verdict(3, adjustment)
    llm = ScriptedLLM(["First.", low, "Second.", low, "Third.", low])
    framework.answer(make(framework, llm), QUESTION)
    prompts = [call.text for call in llm.calls[::2]]
    assert len(set(prompts)) == len(prompts) > 1
    assert (len(prompts[1]) > len(prompts[0])) == (adjustment > 0)


@each_framework
def test_of_stock_texts_only_the_evidence_is_sent(framework):
    def sent(**options):
        loop = stock(framework, ScriptedLLM(["An answer."]), feedback=None, **options)
        return [framework.text(piece) for piece in framework.answer(loop, QUESTION).sources]

    texts = sent()
    assert any("Runa Stell" in text for text in texts)
    assert sum(map(estimate_tokens, texts)) < sum(map(estimate_tokens, TEXTS.values()))
    assert set(sent(evidence=None)) <= set(TEXTS.values())


@each_framework
def test_it_is_made_of_documents_and_a_preset(framework):
    documents = [framework.document(text, name) for name, text in TEXTS.items()]
    llm = ScriptedLLM(["Runa.", verdict(9)])
    made = framework.loop.from_documents(documents, llm, encoder=HashEncoder(), preset="recursive")
    assert (made.rag.preset, framework.answer(made, QUESTION).text) == ("recursive", "Runa.")


@each_framework
def test_it_needs_a_retriever_or_a_pipeline_and_a_model_that_answers(framework):
    with pytest.raises(InputError, match="retriever"):
        framework.loop(llm=ScriptedLLM([]))
    with pytest.raises(InputError, match="its own retriever"):
        framework.loop(rag=PreciseRAG(INDEX), reranker="packaged")
    with pytest.raises(LLMError, match="down"):
        framework.answer(ours(framework, ScriptedLLM([RuntimeError("down")])), QUESTION)
    for make in (framework.loop.from_rag, framework.retriever):
        with pytest.raises(InputError, match="rag must be a PreciseRAG, got 'sage'"):
            make("sage")
