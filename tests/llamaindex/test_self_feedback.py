"""What LlamaIndex asks of the engine that answers; what it answers is in tests/adapters."""

import re

import pytest
from llama_index.core import Settings, SummaryIndex
from llama_index.core.base.response.schema import AsyncStreamingResponse, Response, StreamingResponse
from llama_index.core.callbacks import CallbackManager, CBEventType, LlamaDebugHandler
from llama_index.core.llms import ChatMessage
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import IndexNode, QueryBundle
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters

from llamaindex_precise import PreciseRerankPostprocessor, PreciseRetriever, SelfFeedbackQueryEngine
from llamaindex_precise.convert import to_core_documents
from precise_rag import GradientSelector, PreciseRAG
from precise_rag.facts import read_facts
from precise_rag.testing import HashEncoder, ScriptedLLM
from precise_rag.trace.html import trace_page
from support.alike import assert_alike
from support.velm import verdict

QUESTION = "Who built the oven of the bakery?"
REPLIES = ["A first draft.", verdict(4, 1), "The better one.", verdict(9)]


@pytest.fixture
def retriever(documents) -> PreciseRetriever:
    return PreciseRetriever.from_documents(documents, HashEncoder(), preset="paretorag")


def growing(retriever, replies, **options) -> SelfFeedbackQueryEngine:
    """An engine whose selection is exactly the first two at step 0, whatever the scores."""
    selector = GradientSelector(assume_ratio=True, min_k=2, ratio=1.0)
    given = {"reranker": None, "redundancy": None, "selector": selector, **options}
    return SelfFeedbackQueryEngine(retriever, ScriptedLLM(replies), **given)


async def test_the_response_lists_the_metadata_of_its_sources_and_the_trace(retriever):
    response = growing(retriever, REPLIES).query(QUESTION)
    assert isinstance(response, Response)
    assert set(response.metadata) == {"precise", *(item.node.node_id for item in response.source_nodes)}
    assert "The better one." in trace_page(response.metadata["precise"]["trace"])
    again = await growing(retriever, REPLIES).aquery(QUESTION)
    assert str(again) == str(response) == "The better one."
    assert_alike(again.source_nodes, response.source_nodes)


async def test_a_streamed_answer_can_be_read_and_is_the_accepted_one(retriever):
    response = growing(retriever, REPLIES, streaming=True).query(QUESTION)
    assert isinstance(response, StreamingResponse)
    assert sum(len(read_facts(item)["sentences"]) for item in response.source_nodes) == 3
    assert response.metadata["precise"]["score"] == 9
    assert list(response.response_gen) == ["The ", "better ", "one."]
    response = await growing(retriever, REPLIES, streaming=True).aquery(QUESTION)
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


def test_a_llamaindex_llm_writes_and_another_judges_and_neither_sees_what_is_hidden(retriever, scripted_chat):
    writer = scripted_chat(reply=lambda prompt: "Ada Holm.")
    judge = scripted_chat(reply=lambda prompt: verdict(9))
    engine = SelfFeedbackQueryEngine(retriever, writer, judge=judge)
    assert str(engine.query("Who was the last keeper?")) == "Ada Holm."
    assert (len(writer.prompts), len(judge.prompts)) == (1, 1)
    for prompt in writer.prompts + judge.prompts:
        assert "Ada Holm" in prompt
        assert "s3cret" not in prompt
        assert "score_scale" not in prompt
    Settings.llm = scripted_chat(reply=lambda prompt: verdict(9))
    later = SelfFeedbackQueryEngine.from_rag(PreciseRAG(engine.rag.index))
    assert str(SelfFeedbackQueryEngine(retriever).query(QUESTION)) == str(later.query(QUESTION)) == verdict(9)


def test_postprocessors_run_once_before_the_selection(retriever):
    engine = SelfFeedbackQueryEngine(
        retriever,
        ScriptedLLM(["x", verdict(9)] * 2),
        node_postprocessors=[PreciseRerankPostprocessor(top_n=3)],
        callback_manager=CallbackManager(),
    )
    assert engine.rag.index.node_postprocessors[0].callback_manager is engine.callback_manager
    nodes = engine.retrieve(QueryBundle(QUESTION))
    assert len(nodes) == 3
    for engine.streaming in (False, True):
        response = engine.synthesize(QueryBundle(QUESTION), nodes, additional_source_nodes=nodes[:1])
        assert str(response) == "x"
        assert response.source_nodes[-1] is nodes[0]


def test_events_carry_the_trace_as_it_happens(retriever, events):
    debug = LlamaDebugHandler(print_trace_on_end=False)
    growing(retriever, REPLIES, callback_manager=CallbackManager([debug])).query(QUESTION)
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


def test_a_query_that_brings_its_own_vectors_is_searched_by_them(retriever, documents):
    bundle = QueryBundle("nothing alike", custom_embedding_strs=["The keeper climbed steps."])
    core = to_core_documents(documents)
    options = {"encoder": HashEncoder(), "preset": "paretorag", "n_candidates": 1}
    rag = PreciseRAG.from_documents(core, ScriptedLLM(["x"]), **options)
    over_retriever = growing(retriever, ["x", verdict(9)])
    for engine in (over_retriever, SelfFeedbackQueryEngine.from_rag(rag)):
        best = max(engine.query(bundle).source_nodes, key=lambda item: item.score or 0.0)
        assert "keeper" in best.node.text.lower()
    assert engine.retrieve(bundle)[0].node.node_id == best.node.node_id


async def test_messages_and_filters_are_those_of_the_framework(documents):
    chat = [
        ChatMessage("Is there a bakery?", role="user"),
        ChatMessage(None, role="assistant", additional_kwargs={"tool_calls": ["search"]}),
        ChatMessage("A page of text.", role="tool"),
        ChatMessage("Yes.", role="assistant"),
    ]
    wanted = MetadataFilters(filters=[MetadataFilter(key="$id", value=documents[0].id_)])
    llm = ScriptedLLM([QUESTION, "In 1931.", verdict(9)] * 2)
    engine = SelfFeedbackQueryEngine.from_documents(documents, llm, HashEncoder())
    for response in (
        engine.answer("Who built it?", history=chat, filter=wanted),
        await engine.aanswer("Who built it?", history=chat, filter=wanted),
    ):
        assert {item.node.source_node.node_id for item in response.source_nodes} == {documents[0].id_}
    said = re.findall(r": (user|assistant)\n(.*)", llm.calls[0].text)
    assert said == [("user", "Is there a bakery?"), ("assistant", "Yes.")]
