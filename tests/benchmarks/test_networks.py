import gzip
import json
from argparse import Namespace
from pathlib import Path

import pytest

from benchmarks.peers import latency, networks
from precise_rag import Document, HybridIndex, load_encoder


@pytest.fixture
def data(tmp_path: Path) -> Path:
    text = "Ilse keeps the lamp of the harbour. The lamp is lit at dusk. Two ferries cross the river."
    line = {"id": "squad/1", "title": "t", "sections": [{"heading": None, "paragraphs": [text]}]}
    question = {
        "id": "q1",
        "doc_ids": ["squad/1"],
        "question": "Who keeps the lamp?",
        "answers": ["Ilse"],
        "evidence": [{"doc_id": "squad/1", "start": 0, "end": 4}],
    }
    for name, record in (("docs", line), ("questions", question)):
        with gzip.open(tmp_path / f"dev_qa_{name}_squad.jsonl.gz", "wt") as file:
            file.write(json.dumps(record) + "\n")
    HybridIndex.build([Document("1", text)], load_encoder(device="cpu")).save(tmp_path / "index")
    return tmp_path


def test_networks_are_timed_in_turn(data: Path) -> None:
    found = networks.measure(Namespace(data=data, texts=3, questions=1, seed=0))
    assert len(found) == 9
    assert all(one["CPU s"] >= 0 for one in found.values())


def test_latency_is_measured_for_each_unit_and_number_of_callers(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(latency, "ROUNDS", 1)
    args = Namespace(data=data, sentences=1, questions=1, callers="1,2", seed=0)
    rows = latency.measure(args, data / "index")
    assert [row["what"] for row in rows] == [
        "cold `precise ask`",
        *(
            f"{unit}s, {callers}"
            for unit in ("sentence", "passage")
            for callers in ("1 callers", "2 callers", "2 callers with pauses")
        ),
    ]
