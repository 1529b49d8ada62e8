import gzip
import json
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.papers import insights
from precise_rag.evaluation.datasets import Evidence, Question
from precise_rag.testing import HashEncoder
from precise_rag.types import Candidate

TEXT = (
    "Ilse Marr keeps the lamp of the harbour. It is lit at dusk.\n\nTwo ferries cross the river each day. "
    "They carry bread and salt."
)


@pytest.fixture
def args(tmp_path: Path) -> Namespace:
    def write(name: str, row: dict[str, Any]) -> None:
        with gzip.open(tmp_path / f"{name}.jsonl.gz", "wt") as file:
            file.write(json.dumps(row) + "\n")

    write("dev_qa_docs_nq", {"id": "nq/1", "text": TEXT})
    evidence = [{"doc_id": "nq/1", "start": 0, "end": 40}]
    write(
        "dev_qa_questions_nq",
        {"id": "a", "question": "Who keeps the lamp?", "evidence": evidence, "answers": ["Ilse Marr"]},
    )
    write(insights.DISTRACTING, {"id": "w", "text": "Honey is sold on Sundays. Bees sleep in winter. " * 20})
    parts = ",".join(insights.PARTS)
    work = tmp_path / "work"
    return Namespace(
        data=tmp_path,
        work=work,
        sets="nq",
        sample=5,
        seed=0,
        characters=1_000,
        parts=parts,
        times="0,1,3",
        retrievers="BM25,hybrid",
    )


def test_every_part_has_its_table(args: Namespace, capsys: Any) -> None:
    results = insights.run(args, HashEncoder())
    by_way = {row["pieces by"]: row for row in results["segments"]}
    assert by_way["sentences"]["pieces"] == 3
    assert by_way["sentences"]["begin leaning (%)"] == "66.7 (0.0–100.0)"
    first = {(row["retriever"], row["order"]): row for row in results["ranks"]}
    assert first["BM25", "as found"]["in 1 best (%)"] == "100.0 (100.0–100.0)"
    assert first["hybrid", "reranked"]["in 7 best (%)"] == "100.0 (100.0–100.0)"
    sent = {(row["retriever"], row["sent"]): row for row in results["retrievers"]}
    assert sent["hybrid", "with the path"]["evidence (%)"] == "100.0 (100.0–100.0)"
    assert sent["BM25", "with the path"]["tokens"] <= sent["BM25", "7 best"]["tokens"]
    more = {row["distractors"] for row in results["distractors"]}
    assert more == {"0 times", "1 times", "3 times"}
    page = insights.render(results)
    assert all(f"## {title}" in page for title, _ in insights.PARTS.values())


def test_pieces_are_whole_sentences_and_ranks_are_of_evidence() -> None:
    pieces = insights.packed(TEXT, limit=20)
    assert "".join(pieces) == TEXT
    assert len(pieces) == 2
    question = Question("q", "Who?", evidence=(Evidence("d", 10, 20),))
    found = [Candidate("d", 0, 10, "x", 2.0, "rank"), Candidate("d", 15, 30, "y", 1.0, "rank")]
    assert insights._rank(question, found) == 2
    assert insights._rank(question, found[:1]) == float("inf")
