"""Tests of the collections of human questions that models are trained on."""

import gzip
import json
from pathlib import Path

import pytest

from benchmarks.harness.datasets import Dataset, Evidence, Question
from precise_rag.types import Document
from training.candidate_lists import collections_of, load_trainable, may_train_on


def written(folder: Path, name: str, records: list[dict]) -> None:
    with gzip.open(folder / f"{name}.jsonl.gz", "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(record) + "\n" for record in records)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    documents = [{"id": f"doc-{n}", "title": f"Title {n}", "text": "Some text."} for n in range(20)]
    questions = [
        {"id": f"q{n}", "question": "What?", "evidence": [{"doc_id": f"doc-{n}", "start": 0, "end": 4}]}
        for n in range(20)
    ]
    for split, stem in (("dev", "squad"), ("train", "nq"), ("train", "selqa")):
        written(tmp_path, f"{split}_qa_docs_{stem}", documents)
        written(tmp_path, f"{split}_qa_questions_{stem}", questions)
    for name, n in (("train_qa_questions_nq", 1), ("dev_qa_questions_squad2", 20)):
        none = {"id": "none", "question": "Who?", "unanswerable": True}
        written(tmp_path, f"{name}_unanswerable", [none | {"doc_id": f"doc-{i}"} for i in range(n)])
    return tmp_path


def test_of_a_development_set_only_the_documented_half_is_loaded(data: Path) -> None:
    dataset = load_trainable("dev/squad", str(data))
    assert {d.id for d in dataset.documents} == {f"doc-{n}" for n in range(20) if may_train_on(f"doc-{n}")}
    assert len(dataset.questions) == 2 * len(dataset.documents)
    assert all(may_train_on(q.group) for q in dataset.questions)


def test_titles_that_say_nothing_are_left_out_and_unanswerable_questions_join_their_set(data: Path) -> None:
    joined, plain = (load_trainable(name, str(data)) for name in ("train/nq", "train/selqa"))
    assert [d.documents[1].metadata["title"] for d in (joined, plain)] == ["", "Title 1"]
    assert [q.id for q in joined.questions if not q.evidence] == ["none"]
    assert all(q.evidence for q in plain.questions)


def dataset_of(*questions: Question) -> Dataset:
    documents = tuple(Document(f"d{n}", "x" * 100) for n in range(8))
    return Dataset("made", documents, questions)


def question(key: str, *doc_ids: str, offered: tuple[str, ...] = ()) -> Question:
    evidence = tuple(Evidence(doc_id, 0, 10) for doc_id in doc_ids)
    return Question(key, f"What is {key}?", evidence, metadata={"candidates": list(offered)})


def test_a_question_comes_with_all_of_its_documents_each_in_one_collection() -> None:
    offered = question("offered", "d2", offered=("d2", "d3", "d4"))
    dataset = dataset_of(question("two places", "d0", "d1"), offered)
    several = list(collections_of(dataset, 1))
    found = {q.id: {d.id for d in one.documents} for one in several for q in one.questions}
    assert found["two places"] >= {"d0", "d1"}
    assert found["offered"] >= {"d2", "d3", "d4"}
    dataset = dataset_of(*(question(f"q{n}", f"d{n % 6}") for n in range(30)))
    ids = [d.id for one in collections_of(dataset, 200) for d in one.documents]
    assert sorted(ids) == [f"d{n}" for n in range(6)]
