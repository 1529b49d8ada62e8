"""Question sets, units of splitters, pages of results, and pipelines measured on a small collection."""

import gzip
import json
from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.harness import tables
from benchmarks.harness.answers import exact_match, f1_match, normalize_answer
from benchmarks.harness.cache import CachedEncoder
from benchmarks.harness.datasets import (
    Dataset,
    Evidence,
    Question,
    drawn,
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
from training.candidate_lists import holds_evidence

TOPICS = ("mill", "baker", "ferry", "school", "orchard", "smithy", "chapel", "market")
FILLER = " ".join(f"Much else is told about house number {n} of the village." for n in range(6))
ANSWERS = {topic: f"The {topic} was built by {topic.title()}son in 1802." for topic in TOPICS}
VILLAGE = Dataset(
    "village",
    tuple(Document(topic, f"{ANSWERS[topic]} {FILLER}") for topic in TOPICS),
    tuple(
        Question(topic, f"Who built the {topic}?", (Evidence(topic, 0, len(ANSWERS[topic])),))
        for topic in TOPICS
    ),
)
"""Eight documents, and a question about each."""


def test_a_set_is_read_with_its_evidence(tmp_path: Path) -> None:
    def write(name: str, *records: object) -> None:
        with gzip.open(tmp_path / f"dev_qa_{name}_s.jsonl.gz", "wt") as file:
            file.writelines(json.dumps(record) + "\n" for record in records)

    section = {"heading": "Light", "paragraphs": ["Ilse keeps the lamp.", "It is lit at dusk."]}
    text = {"id": "s/2", "text": "A lamp.", "license": "CC0"}
    write("docs", {"id": "s/1", "title": "Lamp", "sections": [section]}, text)
    span = {"doc_id": "s/1", "start": 0, "end": 4}
    asked = {"id": "1", "question": "Who?", "answers": ["Ilse"], "evidence": [span, {"doc_id": "s/2"}]}
    write("questions", {**asked, "label": 2}, {"id": "2", "question": "Why?", "doc_id": "s/2"})
    dataset = load_development_set("s", tmp_path)
    assert [d.text for d in dataset.documents] == ["Ilse keeps the lamp.\n\nIt is lit at dusk.", "A lamp."]
    assert dataset.documents[1].metadata == {"license": "CC0"}
    evidence = (Evidence("s/1", 0, 4), Evidence("s/2", 0, 7))
    assert dataset.questions[0] == Question("1", "Who?", evidence, ("Ilse",), None, {"label": 2})
    assert [question.group for question in dataset.questions] == ["s/1", "s/2"]
    assert len(dataset.measurable().questions) == len(dataset.sample(1).questions) == 1
    write("questions", {**asked, "evidence": [{**span, "end": 99}]})
    with pytest.raises(ValueError, match="is in no document"):
        load_development_set("s", tmp_path)


def test_across_languages_is_asked_in_english_about_articles_that_nothing_was_trained_on(
    tmp_path: Path,
) -> None:
    names = [f"{n:02}" for n in range(30)]
    pairs = [(language, name) for language in ("en", "de", "es", "zh", "ar", "ru") for name in names]
    for kind in ("docs", "questions"):
        with gzip.open(tmp_path / f"dev_qa_{kind}_xquad.jsonl.gz", "wt") as file:
            for language, name in pairs:
                doc_id = f"xquad/{language}/{name}"
                asked = {"question": f"{language} {name}?", "evidence": [{"doc_id": doc_id}]}
                one = {"id": doc_id, "text": "A lamp."} if kind == "docs" else {"id": doc_id[6:], **asked}
                file.write(json.dumps(one) + "\n")
    dataset = load_development_set("across", tmp_path)
    kept = [name for name in names if not may_train_on(f"squad/{name}")]
    expected = [f"xquad/{('de', 'es', 'zh', 'ar', 'ru')[row % 5]}/{name}" for row, name in enumerate(kept)]
    assert sorted(d.id for d in dataset.documents) == sorted(expected)
    assert {q.group: q.text for q in dataset.questions} == {one: f"en {one[-2:]}?" for one in expected}
    assert dataset.name == "across"


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


@pytest.mark.parametrize(
    ("candidate", "is_held"),
    [(("a", 20, 60), True), (("a", 0, 100), True), (("a", 21, 61), False), (("b", 10, 30), False)],
)
def test_evidence_is_held_by_half_of_the_shorter(candidate, is_held) -> None:
    assert holds_evidence(Evidence(*candidate), (Evidence("a", 10, 30),)) == is_held


def test_texts_are_found_with_overlap_and_changed_white_space() -> None:
    document = Document("d", "one two\n\ntwo three  four two")
    spans = locate_texts(document, ["one two", "two two three", " ", "three four two", "two"])
    found = [document.text[slice(*span)] for span in spans]
    assert found == ["one two", "two\n\ntwo three", "three  four two", "two"]
    assert [unit.text for unit in from_texts(str.split)(document)] == document.text.split()
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


def test_answers_by_hand_and_a_dash_in_a_table_for_what_is_not_a_number() -> None:
    assert normalize_answer("  The U.S.A., an   example: a “test”! ") == "usa example “test”"
    assert (exact_match("the Lamp.", ["a lamp", "x"]), exact_match("lamps", ["lamp"])) == (1, 0)
    assert f1_match("the cat sat on a mat", ["x", "cat was on the mat"]) == pytest.approx(2 * 3 / 8)
    assert (f1_match("the", ["an"]), f1_match("the", ["x"])) == (1, 0)
    rows = [{"a": "x|y", "n": 1234, "f": 0.25}, {"a": "z", "g": Interval(1.0, -2.0, 3.0), "f": np.nan}]
    lines = tables.table(rows, ".2f").splitlines()
    assert lines[0] == "| a | n | f | g |"
    assert lines[2:] == ["| x\\|y | 1,234 | 0.25 |  |", "| z |  | – | +1.00 (-2.00 to +3.00) |"]


def test_pipelines_are_measured_and_shown() -> None:
    pipelines = {
        "whole documents": lambda documents, encoder: lambda question: [Evidence("mill", 0, 300)],
        "search": search(HybridIndex, returns="sentence"),
        "preset": preset(reranker="packaged"),
    }
    found = measure(pipelines, VILLAGE, HashEncoder())
    assert found.values["whole documents"]["recall"].tolist() == [1, *[0] * 7]
    assert found.values["search"]["recall"].mean() == pytest.approx(1)
    assert found.values["search"]["recall@200"].mean() > 0.9
    assert found.values["preset"]["nDCG@10"].mean() > 0.9
    assert found.values["preset"]["tokens"].mean() < found.values["search"]["tokens"].mean()
    page = "\n".join(sections([found, found]))
    assert page.startswith("## Mean over village, village\n| pipeline | 200 | 400 |")
    assert "## village: 8 documents, 8 questions" in page


def test_a_page_says_how_it_was_made_and_names_no_folder_of_the_machine(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(tables, "RESULTS", tmp_path)
    monkeypatch.setattr("sys.argv", ["x", "--data=/home/me/sets", "--sample", "3", "--vectors", "/tmp/v"])
    path = tables.save("name", "benchmarks.x", Namespace(sample=3, seed=1), "Title", "Body.", "", "More.")
    text = path.read_text(encoding="utf-8")
    assert text.startswith("# Title\n\n`python -m benchmarks.x --data DIR --sample 3`, ")
    assert "seed 1, at most 3 questions a set" in text
    assert text.endswith("\n\nBody.\n\nMore.\n")


def test_each_text_is_encoded_once_for_all_that_share_the_file_and_queries_are_apart(tmp_path: Path) -> None:
    class Turned(HashEncoder):
        def encode(self, texts, *, show_progress=False):
            return -super().encode(texts)

    inner, file = Turned(32), tmp_path / "folder" / "vectors.sqlite"
    for texts in (["a b", "c", "a b"], ["c", "d"], []):
        expected = HashEncoder(32).encode(texts)
        np.testing.assert_allclose(CachedEncoder(inner, file).encode(texts), -expected, rtol=1e-6)
        np.testing.assert_allclose(CachedEncoder(inner, file).encode_queries(texts), expected, rtol=1e-6)
    assert inner.calls == ["a b", "c", "d"]
