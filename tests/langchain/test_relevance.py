import asyncio
import json
import re

import pytest
from langchain_core.documents import Document
from langchain_core.runnables import RunnableConfig

from langchain_precise import RelevanceFilterCompressor
from precise_rag.testing import ScriptedLLM

FOUND = [
    Document("Ada Brandt built the town clock in 1911.", id="a"),
    Document("Rye bread keeps for a month.", id="b"),
    Document("The clock of the town was built by Ada Brandt.", id="c"),
    Document("Ada Brandt built the town clock in 1911!", id="d"),
]


def relevance(prompt):
    """Reply with a high score for each chunk in the prompt that names the clock."""
    chunks = re.findall(r"^\S+ chunk (\S+)\n(.*)$", prompt, re.MULTILINE)
    scores = {key: 0.9 if "clock" in text else 0.1 for key, text in chunks}
    return json.dumps(
        {"scores": [{"id": k, "base": s, "reflection": s, "critic": s} for k, s in scores.items()]}
    )


@pytest.mark.parametrize("config", [None, {"max_concurrency": 2}])
def test_no_more_calls_at_once_than_allowed(scripted_chat, config: RunnableConfig | None):
    allowed = 2 if config else 3
    input = {"query": "q", "documents": FOUND}
    options = {"batch_size": 1, "max_concurrency": 3}
    chat = scripted_chat(reply=relevance, delay=0.01)
    RelevanceFilterCompressor(llm=chat, **options).invoke(input, config)
    assert 1 <= chat.peak <= allowed
    assert len(chat.prompts) == len(FOUND)
    chat = scripted_chat(reply=relevance, delay=0.01)
    asyncio.run(RelevanceFilterCompressor(llm=chat, **options).ainvoke(input, config))
    assert chat.peak == allowed


async def test_model_calls_are_children_of_the_compressor(scripted_chat):
    compressor = RelevanceFilterCompressor(llm=scripted_chat(reply=relevance), batch_size=1)
    input = {"query": "q", "documents": FOUND}
    events = [event async for event in compressor.astream_events(input, {"tags": ["mine"]}, version="v2")]
    runs = [event for event in events if event["event"] == "on_chat_model_start"]
    assert len(runs) == len(FOUND)
    assert all(run["parent_ids"] == [events[0]["run_id"]] and "mine" in run["tags"] for run in runs)
    names = [event["name"] for event in events if event["event"] == "on_custom_event"]
    assert names == ["precise_rag_call"] * len(FOUND) + ["precise_rag_stage"]


def test_something_that_is_no_model_is_refused():
    with pytest.raises(ValueError, match="llm must be the name of a model"):
        RelevanceFilterCompressor(llm=object())
    with pytest.raises(ValueError, match="batch_size"):
        RelevanceFilterCompressor(llm=ScriptedLLM([]), batch_size=0)
