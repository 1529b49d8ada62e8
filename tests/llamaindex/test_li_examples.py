"""The examples, run as they stand but for a cheaper encoder and a scripted model."""

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
