"""The example runs as written, without a key."""

import importlib.util
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples" / "llamaindex_steps.py"


def test_each_step_sends_less_or_finds_more(capsys):
    spec = importlib.util.spec_from_file_location("example", EXAMPLE)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    example.main()

    header, *lines = capsys.readouterr().out.splitlines()
    assert header.split() == ["tokens", "answers"]
    tokens, answers = zip(*((int(line.split()[-4]), int(line.split()[-3])) for line in lines), strict=True)
    assert tokens[3] < tokens[2] < tokens[0] / 3
    assert answers[3] >= answers[0] > 3
