"""The example runs as written, without a key and with a model."""

import importlib.util
from pathlib import Path

from langchain_core.runnables import RunnableLambda

EXAMPLE = Path(__file__).parents[2] / "examples" / "langchain_steps.py"


def test_each_step_sends_less_or_finds_more(capsys):
    spec = importlib.util.spec_from_file_location("example", EXAMPLE)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    asked = []

    def llm(prompt):
        asked.append(prompt.to_string())
        return "On the way out."

    example.main(RunnableLambda(llm))

    header, *lines = capsys.readouterr().out.splitlines()
    assert header.split() == ["tokens", "answers"]
    assert lines[1::2] == ["     On the way out."] * 4
    tokens, answers = zip(
        *((int(line.split()[-4]), int(line.split()[-3])) for line in lines[::2]), strict=True
    )
    assert tokens[3] < tokens[2] < tokens[0] / 3
    assert answers[3] >= answers[0] > 3
    assert all('"__exit__()" method is invoked' in prompt for prompt in asked)
