"""The self-feedback components answer, and send what the core sends, over stock retrievers and over ours."""

import pytest

from precise_rag import Document, GradientSelector, InputError, PreciseRAG, read_facts
from precise_rag.errors import LLMError
from precise_rag.index import HybridIndex
from precise_rag.llm import Budget
from precise_rag.testing import HashEncoder, ScriptedLLM
from precise_rag.tokens import estimate_tokens
from support.frameworks import each_framework
from support.velm import CORE, assert_same_excerpts, retriever, verdict

TEXTS = {
    "mill": (
        "The mill grinds rye for three villages. Its wheel was carved by Runa Stell in 1902. "
        "Oak from the north slope was used. The miller sleeps by day. A cat guards the flour. "
        "The stream freezes in January. Nobody grinds then. Children skate past the mill."
    ),
    "ferry": (
        "The ferry to Velm leaves at nine. It carries mail and bread. In storms it stays in port. "
        "A red lantern says so. The captain has sailed since 1998. Tickets are sold on board."
    ),
}
QUESTION = "Who carved the wheel of the mill?"
INDEX = HybridIndex.build([Document(name, text) for name, text in TEXTS.items()], HashEncoder())


def ours(framework):
    return framework.retriever("Hybrid").from_index(INDEX)


def stock(framework):
    store = framework.stock([framework.piece(text, name) for name, text in TEXTS.items()])
    return framework.stock_retriever(store, 4)


def sent(framework, over, **options):
    """The texts that are sent for one answer without feedback."""
    loop = framework.loop(over, ScriptedLLM(["An answer."]), feedback=None, **options)
    return [framework.text(piece) for piece in framework.answer(loop, QUESTION).sources]


@each_framework
def test_answers_prompts_and_rounds_are_those_of_the_core(framework):
    replies = ["Nobody.", verdict(3, 1), "Runa Stell.", verdict(8, -1), "never asked"]
    core_llm, llm = ScriptedLLM(replies), ScriptedLLM(replies)
    options = {"selector": GradientSelector(min_k=2, ratio=1.0, min_score=0.02, min_keep=3)}
    expected = PreciseRAG(HybridIndex.build(CORE, HashEncoder()), core_llm, **options).answer(QUESTION)
    assert (expected.text, len(expected.rounds)) == ("Runa Stell.", 2)
    text, sources, facts = framework.answer(framework.loop(retriever(framework), llm, **options), QUESTION)
    assert (text, facts["score"], facts["note"]) == (expected.text, expected.judgement.score, expected.note)
    assert (facts["kind"], [turn["step"] for turn in facts["trace"]["rounds"]]) == ("generated", [0, 1])
    assert_same_excerpts(framework, sources, [passage.excerpt for passage in expected.passages])
    assert facts["trace"]["rounds"] == [turn.to_dict() for turn in expected.trace.rounds]
    assert list(map(without_mark, llm.calls)) == list(map(without_mark, core_llm.calls))


def without_mark(call):
    """A prompt without the random mark that sets data apart, which its system message names."""
    mark = call.text.partition("begin with the mark ")[2].split(".")[0]
    return call.text.replace(mark, "MARK")


@each_framework
def test_the_best_answer_is_returned_with_its_own_sources(framework):
    replies = ["First.", verdict(4, 1), "Better.", verdict(8, 1), "Worse.", verdict(3, 1)]
    selector = GradientSelector(assume_ratio=True, min_k=2, ratio=1.0)
    options = {"reranker": None, "redundancy": None, "selector": selector}
    found = framework.answer(framework.loop(ours(framework), ScriptedLLM(replies), **options), QUESTION)
    assert (found.text, found.facts["score"]) == ("Better.", 8)
    assert [turn["step"] for turn in found.facts["trace"]["rounds"]] == [0, 1, 2]
    assert sum(len(read_facts(source)["sentences"]) for source in found.sources) == 3


@each_framework
@pytest.mark.parametrize("over", [ours, stock])
@pytest.mark.parametrize("adjustment", [1, -1])
def test_more_and_less_change_what_is_sent(framework, over, adjustment):
    low = verdict(3, adjustment)
    llm = ScriptedLLM(["First.", low, "Second.", low, "Third.", low])
    framework.answer(framework.loop(over(framework), llm), QUESTION)
    prompts = [call.text for call in llm.calls[::2]]
    assert len(prompts) > 1
    assert len(set(prompts)) == len(prompts)
    assert (len(prompts[1]) > len(prompts[0])) == (adjustment > 0)


@each_framework
def test_over_an_index_they_send_what_the_pipeline_sends(framework):
    expected = PreciseRAG(INDEX).answer(QUESTION).passages
    assert sent(framework, ours(framework)) == [passage.text for passage in expected]


@each_framework
def test_of_stock_texts_only_the_evidence_is_sent(framework):
    texts = sent(framework, stock(framework))
    assert any("Runa Stell" in text for text in texts)
    assert not any(text in TEXTS["ferry"] for text in texts)
    assert sum(map(estimate_tokens, texts)) < sum(map(estimate_tokens, TEXTS.values()))
    assert set(sent(framework, stock(framework), evidence=None)) <= set(TEXTS.values())


@each_framework
def test_a_sentence_that_comes_again_is_sent_once(framework):
    store = framework.stock(
        [framework.piece(TEXTS["mill"], "one"), framework.piece(TEXTS["mill"][:84], "two")]
    )
    texts = sent(framework, framework.stock_retriever(store, 4))
    assert len(texts) == len(set(texts))


@each_framework
def test_a_pipeline_or_a_preset_answers_as_it_is(framework):
    cls = type(framework.loop(ours(framework), ScriptedLLM([])))
    rag = PreciseRAG(INDEX, ScriptedLLM(["x", verdict(9)] * 2))
    found = framework.answer(cls.from_rag(rag), QUESTION)
    assert [framework.text(piece) for piece in found.sources] == [
        p.text for p in rag.answer(QUESTION).passages
    ]
    documents = [framework.document(text, name) for name, text in TEXTS.items()]
    llm = ScriptedLLM(["Runa.", verdict(9)])
    made = cls.from_documents(documents, llm, HashEncoder(), preset="recursive")
    assert (made.rag.preset, framework.answer(made, QUESTION).text) == ("recursive", "Runa.")
    for make in (cls.from_rag, framework.retriever("Precise").from_rag):
        with pytest.raises(InputError, match="rag must be a PreciseRAG, got 'sage'"):
            make("sage")


@each_framework
def test_it_needs_a_retriever_or_a_pipeline_and_not_both(framework):
    loop = framework.loop(ours(framework), ScriptedLLM([]))
    with pytest.raises(InputError, match="retriever"):
        type(loop)(llm=ScriptedLLM([]))
    with pytest.raises(InputError, match="its own retriever"):
        type(loop)(rag=loop.rag, reranker="packaged")


@each_framework
def test_a_budget_ends_it_early_and_errors_of_the_model_are_not_answers(framework):
    llm = ScriptedLLM(["First.", verdict(4, 1)])
    found = framework.answer(framework.loop(ours(framework), llm, budget=Budget(calls=2)), QUESTION)
    assert (found.text, found.facts["score"]) == ("First.", 4)
    assert "calls" in found.facts["note"]
    down = framework.loop(ours(framework), ScriptedLLM([RuntimeError("down")]))
    with pytest.raises(LLMError, match="down"):
        framework.answer(down, QUESTION)
