import gzip
import json
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from benchmarks.papers import answers, contexts
from precise_rag.evaluation.datasets import Question
from precise_rag.testing import HashEncoder, ScriptedLLM
from precise_rag.types import Candidate, Document, ExtractedAnswer, Message, Reading

TEXT = (
    "Ilse Marr keeps the lamp of the harbour. The lamp is lit at dusk. Two ferries cross the river each day."
)
DOCUMENTS = [Document("squad/1", TEXT), Document("squad/2", "Bread prices rose in May. Bakers sold less.")]
QUESTIONS = [
    Question("a", "Who keeps the lamp of the harbour?", answers=("Ilse Marr",), doc_id="squad/1"),
    Question("b", "When is the lamp lit?", answers=("at dawn", "dusk"), doc_id="squad/1"),
    Question("c", "Is the lamp lit?", answers=("yes",), doc_id="squad/1"),
]
NONE = [Question("n", "Who sank the ferry?", doc_id="squad/1")]
GIVEN = contexts.Collection("squad", DOCUMENTS, QUESTIONS, NONE)


class NameReader:
    """Finds a name in every text, if the question asks for somebody."""

    def __init__(self) -> None:
        self.n_read = 0

    def read(self, query: str, texts: Sequence[Candidate]) -> Reading:
        self.n_read += 1
        if "Who keeps" not in query:
            return Reading((), 0.1)
        return Reading((ExtractedAnswer("0", 0, 9, "Ilse Marr", 0.9),), 0.8)


@pytest.fixture
def args(tmp_path: Path) -> Namespace:
    options = {"sample": 5, "seed": 0, "characters": 10_000, "metrics": "F1,EM,ROUGE-L"}
    options |= {"leave_out": "", "read": 5}
    return Namespace(data=tmp_path, work=tmp_path / "work", **options)


def model(messages: Sequence[Message]) -> str:
    """A model that answers each question with the same name, and is pleased with it."""
    system = messages[0].content
    if '"adjustment"' in system or "Context Adjustment" in system:
        return json.dumps({"score": 10, "adjustment": 0})
    if '{"scores"' in system:
        return json.dumps({"scores": []})
    return "Ilse Marr"


def test_an_answer_is_contained_as_whole_words() -> None:
    assert answers.is_contained(["the Lamp!"], [" lamp is lit "])
    assert not answers.is_contained(["amp"], [" lamp is lit "])
    assert not answers.is_contained(["lamp is"], [" lamp ", " is it "])
    assert not answers.is_contained(["yes"], [" yes "])


def test_what_is_sent_is_read_and_nothing_is_computed_twice(args: Namespace, capsys: Any) -> None:
    reader = NameReader()
    results = answers.run([GIVEN], args, HashEncoder(), reader)
    made = results["sets"]["squad"]["pipelines"]
    assert set(made) == {contexts.NAIVE, "precise", contexts.SEARCH, *contexts.PAPERS} | {
        f"precise without {part}" for part in contexts.PARTS
    }
    assert made[contexts.NAIVE]["contained"][0] == 100  # of the two that stand in the documents
    assert made[contexts.NAIVE]["reader EM"][0] == pytest.approx(100 / 3)
    assert results["mean"][contexts.NAIVE]["reader EM"] == pytest.approx([100 / 3, 0, 0, 0])
    told = results["unanswerable"]["precise"]
    assert told["nothing"] == 100
    assert told["nothing, answerable"] == pytest.approx(200 / 3)
    assert told["AUC by reader"] == pytest.approx(4 / 6)
    page = answers.render(results)
    assert "## Questions without an answer" in page
    assert "| precise without evidence |" in page
    n_read = reader.n_read
    capsys.readouterr()
    assert answers.run([GIVEN], args, HashEncoder(), reader) == results
    assert reader.n_read == n_read
    args.read = 1
    [mean, _, _] = answers.run([GIVEN], args, HashEncoder(), reader)["sets"]["squad"]["pipelines"]["precise"][
        "reader EM"
    ]
    assert mean == 100  # only the first question is read
    args.leave_out = "sage,recursive"
    fewer = set(answers.run([GIVEN], args, HashEncoder(), reader)["mean"])
    assert fewer == set(made) - {"sage", "recursive"}
    assert not capsys.readouterr().out


def test_each_pipeline_is_measured_with_a_model(args: Namespace) -> None:
    results = answers.run([GIVEN], args, HashEncoder(), None, ScriptedLLM(model))
    for name, row in results["sets"]["squad"]["pipelines"].items():
        assert row["EM"][0] == pytest.approx(100 / 3), name
        assert row["ROUGE-L"][0] >= row["EM"][0]
    chosen = Question("d", "Who keeps it?", answers=("B",), metadata={"options": ["Ada", "Ilse"], "label": 1})
    given = contexts.Collection("quality", DOCUMENTS, [chosen], [])
    results = answers.run([given], args, HashEncoder(), None, ScriptedLLM(lambda messages: "B"))
    assert results["sets"]["quality"]["pipelines"]["precise"]["accuracy"][0] == 100


def test_what_was_computed_before_a_stop_is_not_lost(tmp_path: Path) -> None:
    file, seen = tmp_path / "one" / "kept.pickle", []

    def length(question: Question) -> int:
        seen.append(question.id)
        if question.id == "c" and len(seen) == 3:
            raise KeyboardInterrupt
        return len(question.text)

    with pytest.raises(KeyboardInterrupt):
        contexts.remembered(file, QUESTIONS, length)
    with file.open("ab") as broken:
        broken.write(b"\x80\x04")  # as a process that is killed leaves it
    expected = [len(question.text) for question in QUESTIONS]
    assert contexts.remembered(file, QUESTIONS, length) == expected
    assert contexts.remembered(file, QUESTIONS, length) == expected
    assert seen == ["a", "b", "c", "c"]


def test_a_collection_has_the_documents_of_its_questions_first(args: Namespace) -> None:
    def write(name: str, rows: list[dict[str, Any]]) -> None:
        with gzip.open(args.data / f"dev_qa_{name}.jsonl.gz", "wt") as file:
            file.write("".join(json.dumps(row) + "\n" for row in rows))

    texts = [{"id": f"nq/{n}", "text": f"Text {n} of the collection."} for n in range(20)]
    write("docs_nq", texts)
    row = {"question": "Which text?", "answers": ["this"]}
    write("questions_nq", [{"id": f"{n}", "doc_id": f"nq/{n}", **row} for n in (7, 11, 13)])
    args.characters, args.sample = 10, 2
    found = contexts.collection("nq", args)
    assert {d.id for d in found.documents} == {f"nq/{q.id}" for q in found.questions}
    assert len(found.questions) == 2
    assert found.unanswerable == []
    args.characters = 100
    found = contexts.collection("nq", args)
    assert {d.id for d in found.documents} >= {"nq/7", "nq/11", "nq/13"}
    assert len(found.documents) == 4
