import gzip
import json
import os
import subprocess
import sys
import tarfile
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
    assert equal["largest difference of a logit of small"] < 0.01
    faiss = result["parts"]["faiss with parameters and many rows"]
    assert faiss["recall"] > 0.9
    assert 100 < faiss["rows of 5,000"] <= 200
    assert result["parts"]["encode on several devices"]["devices"] == ["cpu", "cpu"]


def test_all_that_is_needed_fits_into_one_archive(data, tmp_path):
    """Unpacked anywhere, it runs with nothing of the checkout; the script names the same command."""
    file = tmp_path / "gpu.tar.gz"
    assert 1e6 < gpu.pack(data, file) < gpu.MOST_PACKED
    with tarfile.open(file) as archive:
        archive.extractall(tmp_path / "there", filter="data")
    there = tmp_path / "there" / "gpu"
    assert "python3 -m benchmarks.gpu --data data --out" in (there / "run.sh").read_text("utf-8")
    environment = {**os.environ, "PYTHONPATH": f"{there / 'core'}{os.pathsep}{there}"}
    command = "-m benchmarks.gpu --data data --out gpu.json --device cpu --megabytes 0.0005 --parts encode"
    subprocess.run([sys.executable, *command.split()], cwd=there, env=environment, check=True, timeout=300)
    result = json.loads((there / "gpu.json").read_text("utf-8"))
    assert result["parts"]["encode"]["tokens/s"] > 0


def test_a_part_that_fails_is_reported_and_the_next_runs(data, monkeypatch, capsys):
    monkeypatch.setattr(gpu, "encode", lambda args: 1 / 0)
    result = gpu.run(arguments(data, parts="encode,search torch 200"), {})
    assert result["parts"]["encode"]["failed"].startswith("ZeroDivisionError")
    assert result["parts"]["search torch 200"]["p50 ms"] > 0
