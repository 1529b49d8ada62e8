"""Question sets, units of splitters, pages of results, and pipelines measured on a small collection."""

import gzip
import json
from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.harness import tables
from benchmarks.harness.answers import exact_match, f1_match, normalize_answer
from benchmarks.harness.datasets import (
    Dataset,
    Evidence,
    Question,
    drawn,
    holds_evidence,
    load_development_set,
    may_train_on,
    unseen,
)
from benchmarks.harness.run import measure, preset, search, sections
from benchmarks.harness.statistics import Interval
from benchmarks.harness.units import Unit, UnitIndex, from_texts, locate_texts
from precise_rag.index import HybridIndex
from precise_rag.testing import HashEncoder
from precise_rag.types import Document


def write(folder: Path, name: str, *records: object) -> None:
    with gzip.open(folder / f"{name}.jsonl.gz", "wt") as file:
        file.writelines(json.dumps(record) + "\n" for record in records)


def village() -> Dataset:
    """Eight documents, and a question about each."""
    documents, questions = [], []
    for topic in ("mill", "baker", "ferry", "school", "orchard", "smithy", "chapel", "market"):
        filler = " ".join(f"Much else is told about house number {n} of the village." for n in range(6))
        answer = f"The {topic} was built by {topic.title()}son in 1802."
        documents.append(Document(topic, f"{filler}\n\n{answer} {filler}"))
        start = len(filler) + 2
        evidence = (Evidence(topic, start, start + len(answer)),)
        questions.append(Question(topic, f"Who built the {topic}?", evidence))
    return Dataset("village", tuple(documents), tuple(questions))


def test_a_set_is_read_with_its_evidence_and_its_languages(tmp_path: Path) -> None:
    section = {"heading": "Light", "paragraphs": ["Ilse keeps the lamp.", "It is lit at dusk."]}
    text = {"id": "s/2", "text": "Die Lampe.", "lang": "de", "license": "CC0"}
    write(tmp_path, "dev_qa_docs_s", {"id": "s/1", "title": "Lamp", "sections": [section]}, text)
    span = {"doc_id": "s/1", "start": 0, "end": 4}
    asked = {"id": "1", "question": "Who?", "answers": ["Ilse"], "evidence": [span], "label": 2}
    write(tmp_path, "dev_qa_questions_s", asked, {"id": "2", "question": "Why?", "doc_id": "s/2"})
    dataset = load_development_set("s", tmp_path)
    assert [d.text for d in dataset.documents] == ["Ilse keeps the lamp.\n\nIt is lit at dusk.", "Die Lampe."]
    assert dataset.documents[1].metadata == {"lang": "de", "license": "CC0"}
    assert dataset.questions[0] == Question(
        "1", "Who?", (Evidence("s/1", 0, 4),), ("Ilse",), None, {"label": 2}
    )
    assert [question.group for question in dataset.questions] == ["s/1", "s/2"]
    assert len(dataset.measurable().questions) == len(dataset.sample(1).questions) == 1
    german = load_development_set("s/de", tmp_path)
    assert [d.id for d in german.documents] == ["s/2"]
    write(tmp_path, "dev_qa_questions_s", {**asked, "evidence": [{**span, "end": 99}]})
    with pytest.raises(ValueError, match="is in no document"):
        load_development_set("s", tmp_path)


def test_no_question_is_about_a_document_that_may_be_trained_on() -> None:
    documents = tuple(Document(f"{n}", "x" * 100) for n in range(40))
    asked = tuple(Question(d.id, "?", (Evidence(d.id, 0, 5),)) for d in documents)
    dataset = Dataset("squad", documents, asked)
    left = {question.id for question in unseen(dataset).questions}
    assert left == {d.id for d in documents if not may_train_on(d.id)}
    assert 10 < len(left) < 30
    assert unseen(Dataset("nq", documents, asked)).questions == asked
    chosen, questions = drawn(dataset, 250, seed=3)
    assert len(chosen) == 2
    assert {question.id for question in questions} == {document.id for document in chosen}


def test_evidence_is_held_by_half_of_the_shorter() -> None:
    wanted = (Evidence("a", 10, 30),)
    assert holds_evidence(Evidence("a", 20, 60), wanted)
    assert holds_evidence(Evidence("a", 0, 100), wanted)
    assert not holds_evidence(Evidence("a", 21, 61), wanted)
    assert not holds_evidence(Evidence("b", 10, 30), wanted)


def test_texts_are_found_with_overlap_and_changed_white_space() -> None:
    document = Document("d", "one two\n\ntwo three  four two")
    spans = locate_texts(document, ["one two", "two two three", " ", "three four two", "two"])
    assert [document.text[slice(*span)] for span in spans] == [
        "one two",
        "two\n\ntwo three",
        "three  four two",
        "two",
    ]
    assert [unit.text for unit in from_texts(str.split)(document)] == [
        "one",
        "two",
        "two",
        "three",
        "four",
        "two",
    ]
    with pytest.raises(ValueError, match="'mill wheel'"):
        locate_texts(document, ["one", "mill wheel"])


@pytest.mark.parametrize("kind", ["dense", "bm25", "hybrid"])
def test_plain_search_finds_the_shared_words_and_each_span_once(kind: str) -> None:
    texts = ["red cat", "blue cat", "green dog"]
    units = [Unit("d", 4 * n, 4 * n + 3, text) for n, text in enumerate(texts)]
    index = UnitIndex([Document("d", "one two thr")], [*units, units[2]], HashEncoder(), kind)
    found = index.search("green dog", 3)
    assert (len(found), found[0].start, found[0].text) == (3, 8, "thr")
    assert found[0].score >= found[1].score


def test_answers_by_hand() -> None:
    assert normalize_answer("  The U.S.A., an   example: a “test”! ") == "usa example “test”"
    assert (exact_match("the Lamp.", ["a lamp", "x"]), exact_match("lamps", ["lamp"])) == (1, 0)
    assert f1_match("the cat sat on a mat", ["x", "cat was on the mat"]) == pytest.approx(2 * 3 / 8)
    assert (f1_match("the", ["an"]), f1_match("the", ["x"])) == (1, 0)


def test_pipelines_are_measured_and_shown() -> None:
    data = village()
    whole = {"whole documents": lambda documents, encoder: lambda question: [Evidence("mill", 0, 600)]}
    found = measure(
        {**whole, "search": search(HybridIndex, returns="sentence"), "preset": preset(reranker="packaged")},
        data,
        HashEncoder(),
        (20, 40),
    )
    assert found.values["whole documents"]["recall"].tolist() == [1, *[0] * 7]
    assert found.values["search"]["recall"].mean() == pytest.approx(1)
    assert found.values["search"]["recall@40"].mean() > 0.9
    assert found.values["preset"]["nDCG@10"].mean() > 0.9
    assert found.values["preset"]["tokens"].mean() < found.values["search"]["tokens"].mean()
    page = "\n".join(sections([measure(whole, data, HashEncoder()), measure(whole, data, HashEncoder())]))
    assert page.startswith("## Mean over village, village\n| pipeline | 200 | 400 |")
    assert "## village: 8 documents, 8 questions" in page


def test_a_table_has_every_column_and_a_dash_for_what_is_not_a_number() -> None:
    rows = [{"a": "x|y", "n": 1234, "f": 0.25}, {"a": "z", "g": Interval(1.0, -2.0, 3.0), "f": np.nan}]
    lines = tables.table(rows, ".2f").splitlines()
    assert lines[0] == "| a | n | f | g |"
    assert lines[2:] == ["| x\\|y | 1,234 | 0.25 |  |", "| z |  | – | +1.00 (-2.00 to +3.00) |"]
    assert tables.percent(Interval(0.5, 0.25, 1.0)) == (50, 25, 100)


def test_a_recorded_command_names_no_folder_of_the_machine() -> None:
    words = ["--data=/home/me/sets", "--sample", "5", "--vectors", "/tmp/v"]
    command = tables.command_line("benchmarks.peers", Namespace(), words)
    assert command == "python -m benchmarks.peers --data DIR --sample 5"


def test_a_page_says_how_it_was_made(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(tables, "RESULTS", tmp_path)
    monkeypatch.setattr("sys.argv", ["x"])
    path = tables.save("name", "benchmarks.x", Namespace(sample=3, seed=1), "Title", "Body.", "", "More.")
    text = path.read_text(encoding="utf-8")
    assert text == capsys.readouterr().out.removesuffix("\n")
    assert text.startswith("# Title\n\n`python -m benchmarks.x --data DIR`, ")
    assert "seed 1, at most 3 questions a set" in text
    assert text.endswith("\n\nBody.\n\nMore.\n")
