"""The examples run as written but for a cheaper encoder and a scripted model."""

import importlib.util
import re
from pathlib import Path
from pydoc_data.topics import topics
from types import ModuleType

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(autouse=True)
def no_key(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def test_quickstart(capsys, monkeypatch, embedding):
    example = load("llamaindex_quickstart")
    monkeypatch.setattr(example, "PreciseEmbedding", lambda: embedding)
    example.main('When is the context manager\'s "__exit__()" method invoked?')
    shown = capsys.readouterr().out
    assert '"__exit__()" method is invoked' in shown
    sources = re.findall(r"^0\.\d{3}  (\w+)\[(\d+):(\d+)\]$", shown, re.M)
    assert len(sources) == 4
    for page, start, end in sources:
        assert topics[page][int(start) : int(end)].strip() in shown


def test_three_steps(capsys, embedding, scripted_chat):
    model = scripted_chat(reply=lambda prompt: "Above seventeen metres a second.")
    load("llamaindex_three_steps").main(embedding, model)
    rows = re.findall(r"^(.+?) {2,}(\d+) +(\d+)%$", capsys.readouterr().out, re.M)
    assert [name.strip() for name, *_ in rows] == [
        "stock: fixed chunks, top 4",
        "1 chunks end with the topic",
        "2 words and meaning at once",
        "3 as many as the scores say",
    ]
    tokens = [int(n) for _, n, _ in rows]
    assert tokens[3] < tokens[2] < tokens[1]
    assert tokens[1] < 1.1 * tokens[0]  # which chunks are found depends on the vectors
    assert tokens[3] < tokens[0] / 2
    assert int(rows[3][2]) >= 75
    assert len(model.prompts) == 4
