import gzip
import json
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from benchmarks.papers import answers
from precise_rag.evaluation.datasets import Question
from precise_rag.testing import HashEncoder, ScriptedLLM
from precise_rag.types import Document, Message

TEXT = (
    "Ilse Marr keeps the lamp of the harbour. The lamp is lit at dusk. Two ferries cross the river each day."
)
DOCUMENTS = [Document("squad/1", TEXT), Document("squad/2", "Bread prices rose in May. Bakers sold less.")]
QUESTIONS = [
    Question("a", "Who keeps the lamp of the harbour?", answers=("Ilse Marr",), doc_id="squad/1"),
    Question("b", "When is the lamp lit?", answers=("at dawn",), doc_id="squad/1"),
    Question("c", "Is the lamp lit?", answers=("yes",), doc_id="squad/1"),
]


def model(messages: Sequence[Message]) -> str:
    """A model that answers each question with the same name, and is pleased with it."""
    system = messages[0].content
    if '"adjustment"' in system or "Context Adjustment" in system:
        return json.dumps({"score": 10, "adjustment": 0})
    if '{"scores"' in system:
        return json.dumps({"scores": []})
    return "Ilse Marr"


def test_an_answer_is_contained_as_whole_words() -> None:
    assert answers.is_contained(["the Lamp!"], ["A lamp is lit."])
    assert not answers.is_contained(["amp"], ["A lamp is lit."])
    assert not answers.is_contained(["lamp is"], ["A lamp.", "Is it?"])
    assert [answers.is_extractive(question) for question in QUESTIONS] == [True, True, False]


def test_each_pipeline_is_measured_with_a_reader_and_with_a_model() -> None:
    def reader(question: str, texts: Sequence[str]) -> tuple[str, float] | None:
        return ("Ilse Marr", 0.9) if "Who" in question else None

    made = dict(answers.pipelines(DOCUMENTS, HashEncoder()))
    assert {"precise", "sage", "paretorag", "chunkrag", "recursive", answers.NAIVE} <= set(made)
    assert len(made) == 7 + len(answers.PARTS)
    figures = answers.measure(made[answers.NAIVE], QUESTIONS, reader)
    assert figures["contained"] == 50
    assert figures["reader EM"] == pytest.approx(100 / 3)
    asked = dict(answers.pipelines(DOCUMENTS, HashEncoder(), ScriptedLLM(model)))
    for name, rag in asked.items():
        found = answers.measure(rag, QUESTIONS, None, ScriptedLLM(model), ["F1", "EM", "ROUGE-L", "BLEU-1"])
        assert found["EM"] == pytest.approx(100 / 3), name
        assert found["ROUGE-L"] >= found["EM"]
    chosen = Question("d", "Who keeps it?", answers=("B",), metadata={"options": ["Ada", "Ilse"], "label": 1})
    picked = answers.measure(made[answers.NAIVE], [chosen], None, None)
    assert "accuracy" not in picked
    judged = dict(
        answers.pipelines(DOCUMENTS, HashEncoder(), ScriptedLLM(["B", '{"score": 10, "adjustment": 0}']))
    )
    assert answers.measure(judged["precise"], [chosen], None, True)["accuracy"] == 100


def test_the_command_measures_questions_without_an_answer_too(tmp_path: Path, capsys: Any) -> None:
    def write(name: str, rows: list[dict[str, Any]]) -> None:
        with gzip.open(tmp_path / f"dev_qa_{name}.jsonl.gz", "wt") as file:
            file.write("".join(json.dumps(row) + "\n" for row in rows))

    write("docs_squad", [{"id": d.id, "text": d.text} for d in DOCUMENTS])
    evidence = [{"doc_id": "squad/1", "start": 0, "end": 9}]
    row = {"id": "a", "question": QUESTIONS[0].text, "answers": ["Ilse Marr"], "evidence": evidence}
    write("questions_squad", [row])
    none = {"id": "n", "question": "Who sank the ferry?", "answers": [], "doc_id": "squad/1", "evidence": []}
    write("questions_squad2_unanswerable", [none])
    args = Namespace(data=tmp_path, sets="squad", sample=5, seed=0, characters=10_000, metrics="F1")
    results = answers.run(args, HashEncoder(), lambda question, texts: ("Ilse", 0.2))
    assert results["squad"]["pipelines"]["precise"]["contained"] == 100
    told = results["unanswerable"]["precise"]
    assert told["reader: none"] == 100
    assert 0 <= told["AUC by score"] <= 1
    page = answers.render(results)
    assert "## Questions without an answer" in page
    assert "| precise without evidence |" in page
