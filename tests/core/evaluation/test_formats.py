"""Questions and documents in the shapes of other tools."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from precise_rag.errors import InputError
from precise_rag.evaluation import Dataset, Evidence, load_dataset

MILL = "The mill stands by the river. It was built in 1802."
INN = "The inn is closed on Mondays."


def write_lines(path: Path, *records: dict[str, Any]) -> Path:
    path.write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
    return path


def write_table(path: Path, *rows: dict[str, str]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def found(dataset: Dataset) -> list[tuple[str, tuple[str, ...], list[str]]]:
    """Each question with its answers and the texts of its evidence."""
    texts = {document.id: document.text for document in dataset.documents}
    return [
        (one.text, one.answers, [texts[e.doc_id][e.start : e.end] for e in one.evidence])
        for one in dataset.questions
    ]


WHEN = ("When was the mill built?", ("1802",), [MILL])
CLOSED = ("When is the inn closed?", ("on Mondays",), [INN])
RAGAS = [
    {
        "user_input": q,
        "reference": a[0],
        "reference_contexts": c,
        "retrieved_contexts": ["x"],
        "response": "?",
    }
    for q, a, c in (WHEN, CLOSED)
]
LANGSMITH = [
    {
        "id": "e1",
        "dataset_id": "d",
        "inputs": {"question": WHEN[0]},
        "outputs": {"answer": "1802", "contexts": [MILL]},
    },
    {
        "id": "e2",
        "inputs": {"messages": [{"role": "user", "content": CLOSED[0]}]},
        "outputs": {"output": "on Mondays"},
        "metadata": {"documents": [{"page_content": INN, "metadata": {}}]},
    },
]


def beir(
    folder: Path, judgements: str = "query-id\tcorpus-id\tscore\nq1\tmill\t1\nq2\tinn\t2\nq2\tmill\t0\n"
) -> Path:
    (folder / "qrels").mkdir(parents=True)
    write_lines(
        folder / "corpus.jsonl",
        {"_id": "mill", "title": "Mills", "text": MILL},
        {"_id": "inn", "title": "", "text": INN},
    )
    write_lines(
        folder / "queries.jsonl",
        {"_id": "q1", "text": WHEN[0]},
        {"_id": "q2", "text": CLOSED[0]},
        {"_id": "q3", "text": "Judged in another split?"},
    )
    (folder / "qrels" / "test.tsv").write_text(judgements)
    (folder / "qrels" / "train.tsv").write_text("query-id\tcorpus-id\tscore\nq3\tinn\t1\n")
    return folder


def test_a_folder_of_beir_brings_documents_and_judged_questions(tmp_path: Path) -> None:
    dataset = load_dataset(None, beir(tmp_path / "scifact"))
    assert [(d.id, d.metadata.get("title")) for d in dataset.documents] == [("mill", "Mills"), ("inn", None)]
    assert [(q.id, q.text, q.evidence) for q in dataset.questions] == [
        ("q1", WHEN[0], (Evidence("mill", 0, len(MILL)),)),
        ("q2", CLOSED[0], (Evidence("inn", 0, len(INN)),)),
    ]


@pytest.mark.parametrize(
    ("judgements", "message"),
    [
        ("q1\tmars\t1\n", "'mars' is not in .*corpus.jsonl"),
        ("q1\tmill\n", "expected query, document and score"),
        ("a\tb\tscore\nq1\tmill\tyes\n", "line 2: the score must be a number, got 'yes'"),
    ],
)
def test_wrong_judgements_are_named_with_their_line(judgements: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        load_dataset(None, beir(tmp_path / "beir", judgements))


def test_judgements_as_trec_writes_them_are_read(tmp_path: Path) -> None:
    dataset = load_dataset(None, beir(tmp_path / "beir", "q1\t0\tmill\t1\n"))
    assert [q.id for q in dataset.questions] == ["q1"]


def test_without_a_head_the_first_judgement_counts(tmp_path: Path) -> None:
    dataset = load_dataset(None, beir(tmp_path / "beir", "q1\tmill\t1.0\n"))
    assert [q.id for q in dataset.questions] == ["q1"]


def test_contexts_of_several_questions_are_one_document(tmp_path: Path) -> None:
    records = [{"user_input": f"{n}?", "reference": "x", "reference_contexts": [MILL, INN]} for n in range(3)]
    dataset = load_dataset(None, write_lines(tmp_path / "a.jsonl", *records))
    assert [document.text for document in dataset.documents] == [MILL, INN]


def test_records_of_ragas_are_read_as_lines_as_one_value_and_as_a_table(tmp_path: Path) -> None:
    lines = write_lines(tmp_path / "ragas.jsonl", *RAGAS)
    (tmp_path / "ragas.json").write_text(json.dumps(RAGAS))
    rows = (
        {**r, **{k: json.dumps(r[k]) for k in ("reference_contexts", "retrieved_contexts")}} for r in RAGAS
    )
    table = write_table(tmp_path / "ragas.csv", *rows)
    for path in (lines, tmp_path / "ragas.json", table):
        assert found(load_dataset(None, path)) == [WHEN, CLOSED]


def test_datasets_of_llamaindex_are_read(tmp_path: Path) -> None:
    pairs = {
        "queries": {"q1": WHEN[0]},
        "corpus": {"n1": MILL, "n2": INN},
        "relevant_docs": {"q1": ["n1"]},
        "mode": "text",
    }
    (tmp_path / "pairs.json").write_text(json.dumps(pairs))
    assert found(load_dataset(None, tmp_path / "pairs.json")) == [(WHEN[0], (), [MILL])]
    examples = [
        {"query": q, "query_by": None, "reference_contexts": c, "reference_answer": a[0]}
        for q, a, c in (WHEN, CLOSED)
    ]
    (tmp_path / "labelled.json").write_text(json.dumps({"examples": examples}))
    assert found(load_dataset(None, tmp_path / "labelled.json")) == [WHEN, CLOSED]


def test_exports_of_langsmith_are_read(tmp_path: Path) -> None:
    lines = write_lines(tmp_path / "examples.jsonl", *LANGSMITH)
    assert found(load_dataset(None, lines)) == [WHEN, CLOSED]
    assert [q.id for q in load_dataset(None, lines).questions] == ["e1", "e2"]
    table = write_table(
        tmp_path / "examples.csv",
        {
            "id": "e1",
            "inputs.question": WHEN[0],
            "outputs.answer": "1802",
            "outputs.contexts": json.dumps([MILL]),
        },
    )
    assert found(load_dataset(None, table)) == [WHEN]
    cells = write_table(
        tmp_path / "cells.csv",
        {
            "inputs": json.dumps({"query": WHEN[0]}),
            "outputs": json.dumps({"answer": "1802", "context": MILL}),
        },
    )
    assert found(load_dataset(None, cells)) == [WHEN]


def test_with_documents_their_evidence_is_looked_up(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "village.md").write_text(f"# Village\n\n{INN}\n\n{MILL}\n")
    dataset = load_dataset(tmp_path / "docs", write_lines(tmp_path / "ragas.jsonl", *RAGAS))
    assert [d.id for d in dataset.documents] == ["village.md"]
    assert found(dataset) == [WHEN, CLOSED]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.jsonl", '{"Frage": "?"}', 'has the keys Frage; expected a record with "question"'),
        ("a.csv", "Frage,Antwort\na,b\n", "has the keys Frage, Antwort; expected"),
        ("a.json", '{"a": 1}', "not a dataset of questions; expected"),
        ("a.json", '{"queries": {}, "corpus": ["x"], "relevant_docs": {}}', "'corpus' must be an object"),
        (
            "a.json",
            '{"queries": {"q": "?"}, "corpus": {}, "relevant_docs": {"q": 1}}',
            "must be a list of ids",
        ),
        (
            "a.json",
            '{"queries": {"q": "?"}, "corpus": {"a": "x"}, "relevant_docs": {"q": ["b"]}}',
            "'b' of 'relevant_docs' is not in 'corpus'",
        ),
        ("a.json", "[1, 2]", "not a dataset of questions; expected"),
        ("a.jsonl", '{"user_input": "", "reference": "x"}', "has no question"),
        ("a.jsonl", '{"inputs": {"a": "1", "b": "2"}, "outputs": {}}', "has no question"),
        ("a.jsonl", '{"question": "?"}', "has questions only; pass the documents"),
    ],
)
def test_other_files_are_refused_with_what_is_known(
    name: str, content: str, message: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(InputError, match=message):
        load_dataset(None, tmp_path / name)


def test_other_folders_are_refused_with_what_is_known(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not a BEIR folder"):
        load_dataset(None, tmp_path)


def test_a_table_of_another_tool_without_contexts_is_read(tmp_path: Path) -> None:
    (tmp_path / "village.md").write_text(MILL)
    table = write_table(tmp_path / "a.csv", {"user_input": "When was it built?", "reference": "1802"})
    (question,) = load_dataset(tmp_path / "village.md", table).questions
    assert question.answers == ("1802",)
