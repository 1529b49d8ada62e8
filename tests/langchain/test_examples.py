"""The examples run as written but for a cheaper encoder."""

import importlib.util
from pathlib import Path

import pytest
from langchain_core.runnables import RunnableLambda

from langchain_precise import PreciseEmbeddings
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
