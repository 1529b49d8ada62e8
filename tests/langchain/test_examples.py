"""The examples run as written but for a cheaper encoder."""

import importlib.util
from pathlib import Path

import pytest
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableLambda

from langchain_precise import PreciseEmbeddings
from precise_rag import Document, PreciseRAG
from precise_rag.cli.serve import make_server
from precise_rag.testing import HashEncoder

EXAMPLES = Path(__file__).parents[2] / "examples"


def load(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(autouse=True)
def no_key(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def test_quickstart(capsys, monkeypatch):
    example = load("langchain_quickstart")
    monkeypatch.setattr(example, "PreciseEmbeddings", lambda: PreciseEmbeddings(HashEncoder()))
    example.main('When is the context manager\'s "__exit__()" method invoked?')
    prompt = capsys.readouterr().out
    assert "Answer from this context only." in prompt
    assert '"__exit__()" method is invoked' in prompt
    assert len(prompt) < 6_000


def test_three_steps(capsys):
    asked = []

    def llm(prompt):
        asked.append(prompt.to_string())
        return "Seventeen metres a second."

    load("langchain_three_steps").main(PreciseEmbeddings(HashEncoder(1024)), RunnableLambda(llm))

    header, *lines = capsys.readouterr().out.splitlines()
    assert header.split() == ["tokens", "evidence"]
    tokens, recall = zip(*(line.split()[-2:] for line in lines[::2]), strict=True)
    assert int(tokens[0]) > int(tokens[1]) > int(tokens[3])
    assert float(recall[3].rstrip("%")) > float(recall[0].rstrip("%"))
    assert all("seventeen metres a second" in prompt for prompt in asked)
    assert lines[1].split() == ["Seventeen", "metres", "a", "second."]


async def test_an_agent_s_tools_search_through_the_protocol():
    mcp = pytest.importorskip("mcp")
    documents = [Document("lamp", "The lamp is lit at dusk. Ilse Brandt keeps it.")]
    server = make_server(PreciseRAG.from_documents(documents, preset="paretorag", encoder=HashEncoder(64)))
    async with mcp.Client(server) as client:
        tools = {tool.name: tool for tool in await load("langchain_mcp").load_tools(client)}
        assert set(tools) == {"search", "read", "collections", "prune"}
        found = await tools["search"].ainvoke({"question": "Who keeps the lamp?"})
        assert "Ilse Brandt keeps it." in found
        assert "lit at dusk" in await tools["read"].ainvoke({"document": "lamp", "place": 0})


class _Caller(GenericFakeChatModel):
    """A model that replies as it was told, and may be given tools."""

    def bind_tools(self, tools, **options):
        return self


@pytest.mark.filterwarnings("ignore:create_react_agent")
async def test_an_agent_answers_from_what_its_search_returns():
    mcp, prebuilt = pytest.importorskip("mcp"), pytest.importorskip("langgraph.prebuilt")
    documents = [Document("lamp", "The lamp is lit at dusk. Ilse Brandt keeps it.")]
    server = make_server(PreciseRAG.from_documents(documents, preset="paretorag", encoder=HashEncoder(64)))
    call = {"name": "search", "args": {"question": "Who keeps the lamp?"}, "id": "1"}
    model = _Caller(messages=iter([AIMessage("", tool_calls=[call]), AIMessage("Ilse Brandt.")]))
    async with mcp.Client(server) as client:
        agent = prebuilt.create_react_agent(model, await load("langchain_mcp").load_tools(client))
        state = await agent.ainvoke({"messages": [("user", "Who keeps the lamp?")]})
    asked, called, found, answer = state["messages"]
    assert (asked.type, called.type, found.type, answer.content) == ("human", "ai", "tool", "Ilse Brandt.")
    assert "Ilse Brandt keeps it." in found.content
