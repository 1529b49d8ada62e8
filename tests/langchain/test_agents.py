"""Agents of LangChain, real ones, whose tools return much."""

import json
import pickle
from typing import Any

import pytest
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import tool

from precise_rag.errors import InputError
from precise_rag.tokens import estimate_tokens
from support.tool_results import LOG, PAGE, RECORDS, read_file

agents = pytest.importorskip("langchain.agents")
middleware = pytest.importorskip("langchain_precise.agents")
Command = pytest.importorskip("langgraph.types").Command
QUESTION = "Which disk is full?"


class Caller(GenericFakeChatModel):
    """A model that replies as it was told, and may be given tools."""

    def bind_tools(self, tools, **options):
        self.metadata = {"tools": [one.name for one in tools]}
        return self


def calls(*wanted):
    """A model that makes one call after the other, each of (name, arguments), and then answers."""
    messages = [AIMessage("", tool_calls=[{"name": n, "args": a, "id": "1"}]) for n, a in wanted]
    return Caller(messages=iter([*messages, AIMessage("It is /dev/sdb1.")]))


@tool
def list_items() -> list:
    """List the items."""
    return RECORDS


@tool
def broken(path: str) -> str:
    """Fail with a long message."""
    raise ValueError(LOG)


@tool(return_direct=True)
def report() -> str:
    """A report for the user."""
    return LOG


@tool
def show(question: str) -> list:
    """Show a page with its picture."""
    picture = {"type": "image_url", "image_url": {"url": "data:,"}}
    return [{"type": "text", "text": PAGE}, picture, {"type": "text", "text": None}]


TOOLS = [tool(read_file), list_items, report, show]


def asking(question: str) -> dict[str, Any]:
    return {"messages": [("user", question)]}


def results(state) -> list[ToolMessage]:
    return [message for message in state["messages"] if message.type == "tool"]


def build(model, tools=TOOLS, **options):
    pruning = middleware.ToolResultPruningMiddleware(300, reranker="packaged", **options)
    pruning = pickle.loads(pickle.dumps(pruning))
    return agents.create_agent(model, tools, middleware=[pruning])


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_long_result_is_cut_and_its_rest_is_read(is_async):
    model = calls(("read_file", {"path": "worker.log"}))
    agent = build(model)
    said = {"messages": [("user", QUESTION), ("assistant", "In the log?"), ("user", "yes, please")]}
    state = await agent.ainvoke(said) if is_async else agent.invoke(said)
    (found,) = results(state)
    assert "/dev/sdb1 is full" in found.content
    assert estimate_tokens(found.content) <= 300
    assert "read_result" in model.metadata["tools"]
    reference = found.content.split("reference='")[1].split("'")[0]
    again = calls(
        ("read_result", {"reference": reference, "start": 100}), ("read_result", {"reference": "x"})
    )
    object.__setattr__(model, "messages", again.messages)
    state = agent.invoke(asking("Read on."))
    read, unknown = results(state)
    assert LOG[100:300] in read.content
    assert unknown.content.startswith("Error: no result is kept under 'x'")
    assert state["messages"][-1].content == "It is /dev/sdb1."


def test_blocks_and_lists_are_cut_and_pictures_and_short_results_stay():
    asked = {"question": "When is __exit__ called?"}
    model = calls(("list_items", {}), ("show", asked), ("read_file", {"path": "note.txt"}))
    state = build(model).invoke(asking("Which item was discontinued?"))
    items, shown, note = results(state)
    assert RECORDS[77] in json.loads(items.content.partition("\n")[0])
    assert estimate_tokens(items.content) <= 300
    blocks: list[Any] = list(shown.content)
    text, picture, odd = blocks
    assert "__exit__" in text["text"]
    assert estimate_tokens(text["text"]) <= 300
    assert (picture["type"], odd["text"]) == ("image_url", None)
    assert note.content == "  short, and with space \n"


def test_what_goes_to_the_user_and_excluded_tools_are_not_cut():
    state = build(calls(("report", {}))).invoke(asking(QUESTION))
    assert results(state)[-1].content == LOG
    agent = build(calls(("read_file", {"path": "worker.log"})), exclude_tools=["read_file"])
    assert results(agent.invoke(asking(QUESTION)))[0].content == LOG


def test_errors_are_not_cut():
    retry = pytest.importorskip("langchain.agents.middleware").ToolRetryMiddleware(max_retries=0)
    pruning = middleware.ToolResultPruningMiddleware(300, reranker="packaged")
    model = calls(("broken", {"path": "x"}))
    agent = agents.create_agent(model, [broken], middleware=[pruning, retry])
    (failed,) = results(agent.invoke(asking(QUESTION)))
    assert failed.status == "error"
    assert LOG in failed.content


def test_a_command_s_messages_are_cut():
    @tool
    def change(tool_call_id: str) -> Any:
        """Change the state."""
        message = ToolMessage(LOG, tool_call_id="1")
        return Command(update={"messages": [message]})

    state = build(calls(("change", {"tool_call_id": "1"})), [change]).invoke(asking(QUESTION))
    (found,) = results(state)
    assert "/dev/sdb1 is full" in found.content
    assert estimate_tokens(found.content) <= 300


def test_names_of_tools_are_checked_at_once():
    with pytest.raises(InputError, match="exclude_tools"):
        middleware.ToolResultPruningMiddleware(exclude_tools="read_file")
