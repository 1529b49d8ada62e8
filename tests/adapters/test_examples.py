"""The examples run as written, without a key; that of LangChain with a model. Type checkers accept them."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest
from langchain_core.runnables import RunnableLambda

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize("name", ["llamaindex_steps", "langchain_steps"])
def test_each_step_sends_less_or_finds_more(name, capsys):
    spec = importlib.util.spec_from_file_location("example", EXAMPLES / f"{name}.py")
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    asked: list[str] = []

    def llm(prompt):
        asked.append(prompt.to_string())
        return "On the way out."

    example.main(*([RunnableLambda(llm)] if name == "langchain_steps" else []))
    header, *lines = capsys.readouterr().out.splitlines()
    assert header.split() == ["tokens", "answers"]
    rows = [line.split() for line in lines if "way out" not in line]
    tokens, answers = zip(*((int(row[-4]), int(row[-3])) for row in rows), strict=True)
    assert tokens[3] < tokens[2] < 0.8 * tokens[0]
    assert answers[3] >= answers[0] > 3
    assert len(asked) == len(lines) - len(rows)
    assert all('"__exit__()" method is invoked' in prompt for prompt in asked)


@pytest.mark.parametrize("framework", ["llamaindex", "langchain"])
def test_an_application_runs_with_all_our_parts(framework):
    pytest.importorskip("langchain_classic")
    done = subprocess.run(
        [sys.executable, EXAMPLES / f"{framework}_app.py"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("400 hours") > 5


@pytest.mark.slow
def test_mypy_accepts_our_parts_in_applications():
    """So does pyright, which is not in the tests because its package fetches the program that it runs."""
    pytest.importorskip("mypy")
    command = [sys.executable, "-m", "mypy", f"--config-file={EXAMPLES}/mypy.ini", "--no-error-summary"]
    apps = [str(EXAMPLES / name) for name in ("llamaindex_app.py", "langchain_app.py")]
    done = subprocess.run([*command, *apps], capture_output=True, text=True, check=False)
    assert done.stdout + done.stderr == ""
