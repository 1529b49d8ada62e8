import json
import re

import pytest
from llama_index.core import Settings, SummaryIndex
from llama_index.core.base.response.schema import AsyncStreamingResponse, Response, StreamingResponse
from llama_index.core.callbacks import CallbackManager, CBEventType, LlamaDebugHandler
from llama_index.core.chat_engine import CondensePlusContextChatEngine, CondenseQuestionChatEngine
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import IndexNode, QueryBundle
from llama_index.core.tools import QueryEngineTool

from llamaindex_precise import (
    GradientSelectionPostprocessor,
    PreciseRerankPostprocessor,
    PreciseRetriever,
    SelfFeedbackQueryEngine,
)
from llamaindex_precise.convert import to_core_documents
from precise_rag import GradientSelector, Ledger, PreciseRAG
from precise_rag.facts import read_facts
from precise_rag.testing import HashEncoder, ScriptedLLM
from precise_rag.trace.html import trace_page
from support.alike import assert_alike

QUESTION = "Who built the oven of the bakery?"


def verdict(score: int, adjustment: int = 0) -> str:
    return json.dumps({"reason": "because", "score": score, "adjustment": adjustment})


@pytest.fixture
def retriever(documents) -> PreciseRetriever:
    return PreciseRetriever.from_documents(documents, HashEncoder(), preset="paretorag")


def growing(retriever, replies, **options) -> SelfFeedbackQueryEngine:
    """An engine whose selection is exactly the first two at step 0, whatever the scores."""
    selector = GradientSelector(assume_ratio=True, min_k=2, ratio=1.0)
    given = {"reranker": None, "redundancy": None, "selector": selector, **options}
    return SelfFeedbackQueryEngine(retriever, ScriptedLLM(replies), **given)


def test_the_response_lists_the_metadata_of_its_sources_and_the_trace(retriever):
    response = growing(retriever, ["Better.", verdict(8)]).query(QUESTION)
    assert isinstance(response, Response)
    assert set(response.metadata) == {"precise", *(item.node.node_id for item in response.source_nodes)}
    assert "Better." in trace_page(json.loads(json.dumps(response.metadata["precise"]["trace"])))


async def test_the_async_path_does_the_same(retriever):
    replies = ["First.", verdict(4, 1), "Better.", verdict(9)]
    expected = growing(retriever, replies).query(QUESTION)
    response = await growing(retriever, replies).aquery(QUESTION)
    assert str(response) == str(expected) == "Better."
    assert_alike(response.source_nodes, expected.source_nodes)


def test_a_streamed_answer_can_be_read_and_is_the_accepted_one(retriever):
    engine = growing(
        retriever, ["A first draft.", verdict(4, 1), "The better one.", verdict(9)], streaming=True
    )
    response = engine.query(QUESTION)
    assert isinstance(response, StreamingResponse)
    assert sum(len(read_facts(item)["sentences"]) for item in response.source_nodes) == 3
    assert response.metadata["precise"]["score"] == 9
    assert list(response.response_gen) == ["The ", "better ", "one."]


async def test_a_streamed_answer_can_be_read_asynchronously(retriever):
    engine = growing(
        retriever, ["A first draft.", verdict(4, 1), "The better one.", verdict(9)], streaming=True
    )
    response = await engine.aquery(QUESTION)
    assert isinstance(response, AsyncStreamingResponse)
    assert response.metadata["precise"]["score"] == 9
    assert [piece async for piece in response.async_response_gen()] == ["The ", "better ", "one."]
    assert str(await response.get_response()) == "The better one."


async def test_without_a_judge_the_answer_streams_while_it_is_written(retriever):
    llm = ScriptedLLM(["One two.", "One two."])
    engine = SelfFeedbackQueryEngine(retriever, llm, feedback=None, streaming=True)
    response = engine.query(QUESTION)
    assert response.source_nodes
    assert "precise" not in response.metadata
    assert list(response.response_gen) == ["One ", "two."]
    assert response.metadata["precise"]["note"] == "judging is off"
    response = await engine.aquery(QUESTION)
    assert [piece async for piece in response.async_response_gen()] == ["One ", "two."]
    assert response.metadata["precise"]["kind"] == "generated"


def test_nothing_found_is_said_and_no_model_is_asked(retriever):
    selector = GradientSelector(assume_ratio=True, min_score=2.0)
    llm = ScriptedLLM([])
    for streaming in (False, True):
        engine = SelfFeedbackQueryEngine(
            retriever, llm, reranker=None, selector=selector, streaming=streaming
        )
        response = engine.query(QUESTION)
        assert str(response) == "The passages do not contain the answer."
        assert response.source_nodes == []
        assert response.metadata["precise"]["kind"] == "context"
    assert llm.calls == []


def test_a_llamaindex_llm_writes_and_another_judges(retriever, scripted_chat):
    writer = scripted_chat(reply=lambda prompt: "Tomas Reyk.")
    judge = scripted_chat(reply=lambda prompt: verdict(9))
    engine = SelfFeedbackQueryEngine.from_args(retriever, writer, judge=judge)
    assert str(engine.query(QUESTION)) == "Tomas Reyk."
    assert (len(writer.prompts), len(judge.prompts)) == (1, 1)
    assert "Tomas Reyk" in judge.prompts[0]


def test_the_application_s_llm_is_the_default(retriever, scripted_chat):
    Settings.llm = scripted_chat(reply=lambda prompt: verdict(9))
    assert str(SelfFeedbackQueryEngine(retriever).query(QUESTION)) == verdict(9)


def test_hidden_metadata_reaches_no_prompt(retriever):
    llm = ScriptedLLM(["Ada Holm.", verdict(9)])
    SelfFeedbackQueryEngine(retriever, llm).query("Who was the last keeper?")
    assert "Ada Holm" in llm.calls[0].text
    assert all("s3cret" not in call.text and "score_scale" not in call.text for call in llm.calls)


def test_postprocessors_run_once_before_the_selection(retriever):
    engine = SelfFeedbackQueryEngine(
        retriever,
        ScriptedLLM(["x", verdict(9)]),
        node_postprocessors=[PreciseRerankPostprocessor(top_n=3)],
        callback_manager=CallbackManager(),
    )
    assert engine.rag.index.node_postprocessors[0].callback_manager is engine.callback_manager
    nodes = engine.retrieve(QueryBundle(QUESTION))
    assert len(nodes) == 3
    response = engine.synthesize(QueryBundle(QUESTION), nodes, additional_source_nodes=nodes[:1])
    assert response.source_nodes[-1] is nodes[0]


def test_events_carry_the_trace_as_it_happens(retriever, events):
    debug = LlamaDebugHandler(print_trace_on_end=False)
    engine = growing(
        retriever, ["One.", verdict(4, 1), "Two.", verdict(9)], callback_manager=CallbackManager([debug])
    )
    engine.query(QUESTION)
    names = [re.sub("Precise|Event", "", event.class_name()) for event in events]
    assert names[:2] == ["QueryStart", "RetrievalStart"]
    own = names[names.index("RetrievalEnd") :]
    assert own == ["RetrievalEnd", "Stage", "Stage", *["Stage", "Call", "Call", "Round"] * 2, "QueryEnd"]
    rounds = [event.record for event in events if event.class_name() == "PreciseRoundEvent"]
    assert [(turn["score"], turn["decision"]) for turn in rounds] == [
        (4, "more context: step +1"),
        (9, "accepted with 9 of 10"),
    ]
    assert len(debug.get_event_pairs(CBEventType.QUERY)) == 1


def test_behind_another_engine_its_trace_stays_out_of_the_prompt(retriever, scripted_chat):
    inner = growing(retriever, ["Tomas Reyk.", verdict(9)])
    index = SummaryIndex(objects=[IndexNode(text="the town", index_id="town", obj=inner)])
    reader = scripted_chat(reply=lambda prompt: "Reyk it was.")
    outer = RetrieverQueryEngine.from_args(index.as_retriever(), llm=reader)
    assert str(outer.query(QUESTION)) == "Reyk it was."
    assert "Tomas Reyk." in reader.prompts[0]
    assert "prompt_version" not in reader.prompts[0]
    assert "score_scale" not in reader.prompts[0]


async def test_as_a_tool_for_agents(retriever):
    engine = growing(retriever, ["Tomas Reyk.", verdict(9)] * 2)
    tool = QueryEngineTool.from_defaults(engine, name="town", description="Knows the town.")
    assert tool.call(input=QUESTION).content == "Tomas Reyk."
    output = await tool.acall(input=QUESTION)
    assert output.raw_output.metadata["precise"]["score"] == 9


async def test_in_a_chat_engine_with_streaming(retriever, scripted_chat):
    engine = growing(retriever, ["Tomas Reyk did.", verdict(9)] * 4, streaming=True)
    chat = CondenseQuestionChatEngine.from_defaults(
        engine, memory=ChatMemoryBuffer.from_defaults(), llm=scripted_chat(reply=lambda prompt: QUESTION)
    )
    first = chat.stream_chat(QUESTION)
    assert "".join(first.response_gen) == "Tomas Reyk did."
    assert first.source_nodes
    assert str(chat.chat("And who was that?")) == "Tomas Reyk did."
    second = await chat.astream_chat("Really?")
    assert "".join([piece async for piece in second.async_response_gen()]) == "Tomas Reyk did."
    assert len(chat.chat_history) == 6


def test_retriever_and_postprocessor_in_a_context_chat_engine(retriever, scripted_chat):
    chat = CondensePlusContextChatEngine.from_defaults(
        retriever,
        memory=ChatMemoryBuffer.from_defaults(),
        llm=scripted_chat(reply=lambda prompt: "Reyk." if "Tomas Reyk" in prompt else "?"),
        node_postprocessors=[GradientSelectionPostprocessor(max_k=2, share_of_best=None)],
    )
    reply = chat.chat(QUESTION)
    assert str(reply) == "Reyk."
    assert len(reply.source_nodes) == 2


def test_choices_and_the_ledger(retriever):
    engine = growing(retriever, ["B", verdict(9)])
    response = engine.answer(QUESTION, options=["Ada Holm", "Tomas Reyk"])
    assert response.metadata["precise"]["choice"] == 1
    ledger = Ledger()
    ledger.add(response.metadata["precise"]["trace"])
    assert ledger.total.calls == 2


def test_a_query_that_brings_its_own_vectors_is_searched_by_them(retriever):
    bundle = QueryBundle(QUESTION, custom_embedding_strs=["The keeper climbed steps."])
    sources = growing(retriever, ["x", verdict(9)]).query(bundle).source_nodes
    assert "keeper" in max(sources, key=lambda item: item.score or 0.0).node.text.lower()


def test_a_pipeline_over_an_index_is_searched_by_them_too(documents):
    rag = PreciseRAG.from_documents(
        to_core_documents(documents),
        ScriptedLLM(["x"]),
        encoder=HashEncoder(),
        preset="paretorag",
        n_candidates=1,
    )
    bundle = QueryBundle("nothing alike", custom_embedding_strs=["The keeper climbed steps."])
    engine = SelfFeedbackQueryEngine.from_rag(rag)
    (found,) = engine.query(bundle).source_nodes
    assert "keeper" in found.node.text.lower()
    assert engine.retrieve(bundle)[0].node.node_id == found.node.node_id
