"""Events of LangChain arrive in order, on the event loop of the handler."""

import asyncio
import threading
from contextlib import aclosing

import pytest
from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda

from langchain_precise import GradientSelectionCompressor, PreciseRetriever, SelfFeedbackChain
from precise_rag import GradientSelector
from precise_rag.testing import HashEncoder, ScriptedLLM
from precise_rag.trace import StageRecord

REPLIES = ["First.", '{"reason": "", "score": 4, "adjustment": 1}', "Second.", "???", "???"]
FOUND = [Document("Eels swim."), Document("Rye bread is dark."), Document("Eels are smoked.")]


class OnTheLoop(AsyncCallbackHandler):
    """A handler of custom events that fails if one arrives on another event loop than its own."""

    raise_error = True

    def __init__(self, slow=0.0):
        self.loop = asyncio.get_running_loop()
        self.heard = []
        self.slow = slow

    async def on_custom_event(self, name, data, *, run_id, **kwargs):
        assert asyncio.get_running_loop() is self.loop
        await asyncio.sleep(self.slow)
        self.heard.append(name.removeprefix("precise_rag_") + data.get("role", data.get("stage", "")))


def chain():
    return SelfFeedbackChain(
        retriever=RunnableLambda(lambda question: FOUND),
        llm=ScriptedLLM(REPLIES),
        selector=GradientSelector(min_k=1, ratio=1.0),
    )


WHOLE_STORY = [
    *("stagesearch", "stagererank", "stagesentences", "stageredundancy", "stageevidence"),
    *("stageselection", "callanswer", "calljudge", "round"),
    *("stageselection", "callanswer", "calljudge", "calljudge", "round"),
]


@pytest.mark.parametrize("slow", [0.0, 0.001])
async def test_the_chain_tells_its_story_in_order_on_the_loop(slow):
    handler = OnTheLoop(slow)
    await chain().ainvoke("eels", {"callbacks": [handler]})
    assert handler.heard == WHOLE_STORY

    handler = OnTheLoop(slow)
    parts = [part async for part in chain().astream("eels", {"callbacks": [handler]})]
    assert parts[-1]["question"] == "eels"
    assert handler.heard == WHOLE_STORY


async def test_compressors_and_retrievers_do_too(documents):
    handler = OnTheLoop()
    await GradientSelectionCompressor().acompress_documents(FOUND, "eels", callbacks=[handler])
    assert handler.heard == ["stagererank", "stageGradientSelectionCompressor"]

    handler = OnTheLoop()
    retriever = PreciseRetriever.from_documents(documents, HashEncoder())
    await retriever.ainvoke("Who built the clock?", {"callbacks": [handler]})
    assert handler.heard[:2] == ["stagesearch", "stagererank"]


@pytest.mark.parametrize("listens", [True, False])
async def test_data_of_records_are_made_off_the_loop_and_only_if_anybody_listens(monkeypatch, listens):
    made, to_dict = [], StageRecord.to_dict

    def made_by(record):
        made.append(threading.current_thread())
        return to_dict(record)

    monkeypatch.setattr(StageRecord, "to_dict", made_by)
    callbacks = [OnTheLoop()] if listens else []
    await GradientSelectionCompressor().acompress_documents(FOUND, "eels", callbacks=callbacks)
    assert len(made) == (2 if listens else 0)
    assert threading.main_thread() not in made


async def test_a_stream_that_is_left_early_leaves_nothing_behind():
    before = asyncio.all_tasks()
    async with aclosing(chain().astream("eels")) as stream:
        async for part in stream:
            if "answer" in part:
                break
    assert asyncio.all_tasks() == before


async def test_an_error_in_a_handler_that_asks_for_it_is_raised():
    class Fails(AsyncCallbackHandler):
        raise_error = True

        async def on_custom_event(self, name, data, *, run_id, **kwargs):
            raise RuntimeError("the log is full")

    with pytest.raises(RuntimeError, match="the log is full"):
        await GradientSelectionCompressor().acompress_documents(FOUND, "eels", callbacks=[Fails()])
