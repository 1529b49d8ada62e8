"""What LangChain asks of the chain that answers; what it answers is in tests/adapters."""

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda

from langchain_precise import SelfFeedbackChain
from precise_rag import FeedbackController, GradientSelector, InputError
from precise_rag.testing import ScriptedLLM
from support.documents import read_cases
from support.scored import Scored
from support.velm import verdict

QUESTION = "Who built the town clock?"
FOUND = [
    Document("Ada Brandt built the town clock.", id="a", metadata={"relevance_score": 0.9}),
    Document("The clock is wound up every Sunday.", id="b", metadata={"relevance_score": 0.2}),
    Document("Eels are smoked.", id="c", metadata={"relevance_score": 0.01}),
]


def sharply_falling(text):
    return 0.9 / 4 ** [document.page_content for document in FOUND].index(text)


def good(prompt):
    return verdict(9) if "adjustment" in prompt else "Ada Brandt built it [1]."


def make_chain(llm, **options):
    options = {"reranker": Scored(sharply_falling), "selector": GradientSelector(min_k=1)} | options
    return SelfFeedbackChain(retriever=RunnableLambda(lambda question: FOUND), llm=llm, **options)


async def test_every_way_to_call_it_gives_the_same(scripted_chat):
    chain = make_chain(scripted_chat(reply=good))
    assert {"type": "string"} in chain.get_input_jsonschema()["anyOf"]

    def outcome(output):
        return {key: value for key, value in output.items() if key != "trace"}

    expected = outcome(chain.invoke(QUESTION))
    assert [d.id for d in expected["context"]] == ["a"]
    assert [(c["number"], c["doc_id"]) for c in expected["citations"]] == [(1, "a")]
    assert outcome(await chain.ainvoke(QUESTION)) == expected
    assert [outcome(o) for o in chain.batch([QUESTION] * 2)] == [expected] * 2
    assert [outcome(o) for o in await chain.abatch([QUESTION] * 2)] == [expected] * 2

    parts = list(chain.stream(QUESTION))
    apart = [part async for part in chain.astream(QUESTION)]
    for stream in (parts, apart):
        assert len([part for part in stream if "answer" in part]) > 1
        whole = stream[0]
        for part in stream[1:]:
            whole = whole + part
        assert outcome(whole) == expected


def test_the_last_draft_can_be_shown_while_it_is_written():
    llm = ScriptedLLM(["Ada Brandt built it.", verdict(4)])
    stream = make_chain(llm, feedback=FeedbackController(max_rounds=1), live_final=True).stream(QUESTION)
    assert next(stream) == {"answer": "Ada "}
    assert len(llm.calls) == 1
    assert list(stream)[-1]["score"] == 4


class Recorder(BaseCallbackHandler):
    """Which runs began under which parent, with which tags, and the custom events."""

    def __init__(self):
        self.names, self.parents, self.tags, self.events = {}, {}, {}, []

    def on_chain_start(self, serialized, inputs, *, run_id, parent_run_id=None, tags=None, **kwargs):
        name = self.names[run_id] = kwargs["name"]
        self.parents[name], self.tags[name] = self.names.get(parent_run_id), tags

    def on_chat_model_start(self, serialized, messages, **kwargs):
        self.on_chain_start(serialized, {}, **kwargs | {"name": "chat"})

    def on_custom_event(self, name, data, *, run_id, **kwargs):
        self.events.append((name, self.names[run_id]))


@pytest.mark.parametrize("way", ["invoke", "ainvoke", "stream", "astream"])
async def test_callbacks_and_tags_reach_the_model(scripted_chat, way):
    recorder = Recorder()
    call = getattr(make_chain(scripted_chat(reply=good)), way)
    called = call(QUESTION, {"callbacks": [recorder], "tags": ["mine"], "metadata": {"user": "u"}})
    if way == "ainvoke":
        await called
    elif way == "astream":
        assert [part async for part in called]
    else:
        assert list(called)
    assert recorder.parents["chat"] == recorder.parents["RunnableLambda"] == "SelfFeedbackChain"
    assert "mine" in recorder.tags["chat"]
    kinds = (*["stage"] * 6, "call", "call", "round")
    assert recorder.events == [(f"precise_rag_{kind}", "SelfFeedbackChain") for kind in kinds]


CHAT = [HumanMessage("Is there a clock in town?"), AIMessage("Yes."), HumanMessage("Who built it?")]


@pytest.mark.parametrize(
    "given",
    [
        CHAT,
        {"input": "Who built it?", "chat_history": CHAT[:2]},
        {"input": "Who built it?", "chat_history": [("human", CHAT[0].text), ("ai", "Yes.")]},
        ChatPromptTemplate.from_messages(CHAT).invoke({}),
        {"messages": CHAT},
        {"input": CHAT[1:], "chat_history": CHAT[:1]},
        [{"role": "user", "content": CHAT[0].text}, {"role": "assistant", "content": "Yes."}, CHAT[2]],
    ],
)
async def test_a_follow_up_is_made_self_contained_first(given):
    def reply(messages):
        text = "\n".join(message.content for message in messages)
        in_order = "Ada Brandt" in text or text.index("clock in town") < text.index("Yes.")
        return good(text) if "Ada Brandt" in text else QUESTION if in_order else "Who?"

    chain = make_chain(ScriptedLLM(reply))
    output = chain.invoke(given)
    assert (output["question"], output["answer"]) == (QUESTION, "Ada Brandt built it [1].")
    assert (await chain.ainvoke(given))["question"] == QUESTION
    assert list(chain.stream(given))[-1]["question"] == QUESTION


@pytest.mark.parametrize(
    ("given", "message"),
    [
        *read_cases("documents.json", "inputs that are refused"),
        ([AIMessage("Hello")], "the last message must be the user's"),
        ({"messages": CHAT[2:], "filter": {"a": 1}}, "set it on the retriever"),
        ({"input": "q", "chat_histroy": CHAT}, "did you mean 'chat_history'"),
    ],
)
def test_other_inputs_are_refused_in_one_line(given, message):
    with pytest.raises(InputError, match=message) as caught:
        make_chain(ScriptedLLM([])).invoke(given)
    assert "\n" not in str(caught.value)
    with pytest.raises(InputError, match="the retriever returns must be a list of Document"):
        SelfFeedbackChain(RunnableLambda(str), ScriptedLLM([])).invoke(QUESTION)


def test_choices_are_part_of_the_input():
    chain = make_chain(ScriptedLLM(["B", verdict(9)]))
    assert chain.invoke({"input": QUESTION, "options": ["Runa Stell", "Ada Brandt"]})["choice"] == 1


async def test_other_keys_of_the_input_are_handed_on(scripted_chat):
    chain, given = make_chain(scripted_chat(reply=good)), {"input": QUESTION, "language": "en", "answer": "?"}
    for output in (chain.invoke(given), await chain.ainvoke(given)):
        assert (output["input"], output["language"]) == (QUESTION, "en")
        assert output["answer"].startswith("Ada")
    assert list(chain.stream(given))[-1]["language"] == "en"
    assert [part async for part in chain.astream(given)][-1]["language"] == "en"
    assert chain.invoke({"messages": CHAT[2:], "user": 1})["user"] == 1
