import gzip
import json
from argparse import Namespace

import pytest

from benchmarks import gpu


@pytest.fixture
def data(tmp_path):
    """Question sets of a few sentences, in the form of the benchmark's files."""
    text = "Ilse keeps the lamp of the harbour. The lamp is lit at dusk. Two ferries cross the river."
    for name in gpu.SETS:
        line = {"id": f"{name}/1", "title": "t", "sections": [{"heading": None, "paragraphs": [text, text]}]}
        with gzip.open(tmp_path / f"dev_qa_docs_{name}.jsonl.gz", "wt") as file:
            file.write(json.dumps(line) + "\n")
    question = {
        "id": "q1",
        "doc_ids": ["squad/1"],
        "question": "Who keeps the lamp?",
        "answers": ["Ilse"],
        "evidence": [{"doc_id": "squad/1", "start": 0, "end": 4}],
    }
    with gzip.open(tmp_path / "dev_qa_questions_squad.jsonl.gz", "wt") as file:
        file.write(json.dumps(question) + "\n")
    return tmp_path


def arguments(data, **changes):
    given = {"device": "cpu", "megabytes": 0.0005, "vectors": "200", "parts": None, "seed": 0}
    return Namespace(data=data, out=data / "gpu.json", **{**given, **changes})


def test_every_part_runs_on_the_cpu(data, capsys):
    args = arguments(data)
    result = gpu.run(args, {"command": "c"})
    assert {name: part for name, part in result["parts"].items() if "failed" in part} == {}
    assert set(result["parts"]) == set(gpu.parts_of(args))
    assert json.loads(args.out.read_text("utf-8")) == result
    equal = result["parts"]["equal to the CPU"]
    assert equal["least cosine"] == pytest.approx(1, abs=1e-3)
    assert equal["share of equal cuts"] == 1
    assert equal["within tolerance"]


def test_a_part_that_fails_is_reported_and_the_next_runs(data, monkeypatch, capsys):
    monkeypatch.setattr(gpu, "encode", lambda args: 1 / 0)
    result = gpu.run(arguments(data, parts="encode,search torch 200"), {})
    assert result["parts"]["encode"]["failed"].startswith("ZeroDivisionError")
    assert result["parts"]["search torch 200"]["p50 ms"] > 0
