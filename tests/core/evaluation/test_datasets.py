"""Datasets read from files, and what is refused."""

import json
from pathlib import Path
from typing import Any

import pytest

from precise_rag.errors import InputError
from precise_rag.evaluation import Evidence, load_dataset, load_development_set
from precise_rag.evaluation.datasets import find_quote

TEXT = "The mill stands\nby the river. It was built in 1802."


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    path = tmp_path / "docs.jsonl"
    lines = [{"id": "mill", "text": TEXT}, {"id": "inn", "text": "The inn is closed.", "lang": "de"}]
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    return path


def write(path: Path, *records: dict[str, Any]) -> Path:
    path.write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
    return path


def test_evidence_by_offsets_by_quotation_and_by_document(documents: Path, tmp_path: Path) -> None:
    questions = write(
        tmp_path / "q.jsonl",
        {
            "id": "1",
            "question": "When?",
            "answers": ["1802"],
            "evidence": [{"doc_id": "mill", "start": 46, "end": 50}],
        },
        {
            "id": "2",
            "question": "Where?",
            "doc_id": "mill",
            "evidence": ["stands by  the RIVER"],
            "level": "easy",
        },
        {"id": "3", "question": "Which?", "evidence": [{"doc_id": "inn"}]},
        {"id": "4", "question": "Who?", "evidence": "nobody wrote this"},
        {"id": "5", "question": "Why?", "answer": "unknown"},
    )
    dataset = load_dataset(documents, questions)
    one, two, three, five = dataset.questions
    assert one.evidence == (Evidence("mill", 46, 50),)
    assert one.answers == (TEXT[46:50],) == ("1802",)
    assert TEXT[slice(*two.evidence[0][1:])] == "stands\nby the river"
    assert two.metadata == {"level": "easy"}
    assert three.evidence == (Evidence("inn", 0, 18),)
    assert (five.answers, five.evidence) == (("unknown",), ())
    assert dataset.unplaced == ("4",)
    assert [q.id for q in dataset.with_evidence().questions] == ["1", "2", "3"]


def test_csv(documents: Path, tmp_path: Path) -> None:
    path = tmp_path / "q.csv"
    path.write_text(
        "id,question,answers,doc_id,evidence,start,end\n"
        'a,When?,1802|in 1802,mill,,46,50\nb,"Where, then?",,mill,by the river,,\n',
        encoding="utf-8",
    )
    first, second = load_dataset(documents, path).questions
    assert (first.answers, first.evidence) == (("1802", "in 1802"), (Evidence("mill", 46, 50),))
    assert (second.text, TEXT[slice(*second.evidence[0][1:])]) == ("Where, then?", "by the river")


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"id": "x"}, '"question"'),
        ({"question": "?", "evidence": [{"doc_id": "barn", "start": 0, "end": 1}]}, "'barn'"),
        ({"question": "?", "evidence": [{"doc_id": "inn", "start": 0, "end": 99}]}, "0-99 do not fit"),
        ({"question": "?", "evidence": [{"start": 0, "end": 9}]}, 'needs a "doc_id"'),
    ],
)
def test_errors_name_the_file_the_line_and_the_fault(
    documents: Path, tmp_path: Path, record: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message) as caught:
        load_dataset(documents, write(tmp_path / "q.jsonl", {"question": "fine?"}, record))
    assert "q.jsonl, line 2" in str(caught.value)


def test_a_repeated_id_and_a_missing_file_are_refused(documents: Path, tmp_path: Path) -> None:
    record = {"id": "1", "question": "?"}
    with pytest.raises(InputError, match="occurs twice"):
        load_dataset(documents, write(tmp_path / "q.jsonl", record, record))
    with pytest.raises(InputError, match="no such file"):
        load_dataset(documents, tmp_path / "absent.jsonl")


def test_samples_are_seeded_and_in_order(documents: Path, tmp_path: Path) -> None:
    path = write(tmp_path / "q.jsonl", *({"id": str(n), "question": f"{n}?"} for n in range(20)))
    dataset = load_dataset(documents, path)
    drawn = [int(q.id) for q in dataset.sample(5, seed=3).questions]
    assert drawn == sorted(drawn)
    assert drawn == [int(q.id) for q in dataset.sample(5, seed=3).questions]
    assert drawn != [int(q.id) for q in dataset.sample(5, seed=4).questions]
    assert dataset.sample(None) is dataset


def test_development_sets_come_from_the_folder_named(
    documents: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import gzip

    with gzip.open(tmp_path / "dev_qa_docs_toy.jsonl.gz", "wb") as file:
        file.write(documents.read_bytes())
    with gzip.open(tmp_path / "dev_qa_questions_toy.jsonl.gz", "wt") as file:
        file.write(
            json.dumps({"id": "1", "question": "?", "evidence": [{"doc_id": "inn", "start": 0, "end": 3}]})
        )
    monkeypatch.delenv("PRECISE_DATA", raising=False)
    with pytest.raises(InputError, match="PRECISE_DATA"):
        load_development_set("toy")
    monkeypatch.setenv("PRECISE_DATA", str(tmp_path))
    assert len(load_development_set("toy").documents) == 2
    german = load_development_set("toy/de")
    assert [d.id for d in german.documents] == ["inn"]
    assert [q.id for q in german.questions] == ["1"]
    assert load_development_set("toy/en").questions == ()


def test_quotations_are_found_whatever_their_white_space_and_case() -> None:
    assert find_quote(TEXT, "  ") is None
    assert find_quote("a+b (c)", "A+B  (C)") == (0, 7)
    assert find_quote(TEXT, "1802") == (46, 50)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("q.jsonl", '{"question": "Who?", "answers": 7}', "has not the form"),
        ("q.jsonl", '{"question": "Who?", "answers": null}', "has not the form"),
        ("q.jsonl", '{"question": "Who?", "evidence": [7]}', "has not the form"),
        ("q.jsonl", '{"question": "Who?", "evidence": "x", "doc_id": []}', "has not the form"),
        ("q.csv", "question,doc_id,start,end\nWho?,a,x,y\n", "offsets 'x'-'y' do not fit"),
        ("q.csv", "question,doc_id,start,end\nWho?,a,1," + "9" * 5_000, "do not fit"),
        ("q.csv", "question\n" + "W" * 200_000, "not a table of questions"),
    ],
)
def test_a_malformed_question_is_one_error(tmp_path: Path, name: str, content: str, message: str) -> None:
    (tmp_path / "docs.jsonl").write_text('{"id": "a", "text": "The lamp is lit."}')
    (tmp_path / name).write_text(content)
    with pytest.raises(InputError, match=message) as error:
        load_dataset(tmp_path / "docs.jsonl", tmp_path / name)
    assert name in str(error.value)
