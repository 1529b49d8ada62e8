"""Recall of the whole path by kind of text: what is drawn and how it stands beside what is aimed at."""

import gzip
import json
from argparse import Namespace

import numpy as np
import pytest

from benchmarks.evidence import path
from precise_rag.encoders import load_encoder
from precise_rag.evaluation import BUDGETS, Dataset, Evidence, Question
from precise_rag.types import Document


def test_a_row_counts_the_budgets_at_which_the_aim_is_reached() -> None:
    found = np.tile([[80.0, 82.0, 70.0, 93.0]], (3, 1))
    most = np.array([90.0, 95.0, 100.0, 100.0])
    row = path.row("dialogues", found, most)
    assert row["200 tokens"] == "80.0 (80.0 to 80.0)"
    assert (row["questions"], row["most 400"], row["aim 800"], row["reached"]) == (3, "95.0", "88", "3 of 4")
    assert path.row("meetings (own)", found, most)["reached"] == ""


def test_no_more_than_fits_into_a_budget_is_possible() -> None:
    text = "The ferry left at noon. " * 200
    asked = (
        Question("long", "?", (Evidence("page", 0, len(text)),)),
        Question("short", "?", (Evidence("page", 0, 9),)),
    )
    most = path.most_possible(Dataset("pages", (Document("page", text),), asked))
    shares = np.minimum(1, np.array(BUDGETS) / (len(text) / 4))
    assert most == pytest.approx(50 + 50 * shares, abs=15)
    assert 50 < most[0] < most[1] < most[2]


def test_noise_ends_with_the_document_that_reaches_the_characters(tmp_path) -> None:
    records = [{"id": str(n), "sections": [{"paragraphs": ["x" * 10]}]} for n in range(9)]
    file = tmp_path / "long.jsonl"
    file.write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
    assert [document.id for document in path.noise(file, 25)] == [f"long.jsonl#{n}" for n in range(3)]


def test_asked_of_its_own_document_a_question_finds_what_many_documents_say(tmp_path) -> None:
    towns = [
        f"{first}{last}" for first in ("Kie", "Ber", "Oslo", "Tro") for last in ("l", "gen", "by", "msund")
    ]
    pages = [
        {"id": town, "sections": [{"paragraphs": [f"The ferry of {town} was built by Ilse Brandt in 1904."]}]}
        for town in towns
    ]
    asked = [{"question": "Who built the ferry?", "evidence": [{"doc_id": town}]} for town in towns]
    for stem, records in (("docs", pages), ("questions", asked)):
        with gzip.open(tmp_path / f"dev_qa_{stem}_ferries.jsonl.gz", "wt", encoding="utf-8") as file:
            file.write("\n".join(map(json.dumps, records)))
    args = Namespace(data=str(tmp_path), sample=len(towns), seed=0)
    dataset = path.dataset_of(path.Kind(("dev/ferries",)), args)
    shares = {own: path.measured(dataset, load_encoder(), own=own) for own in (True, False)}
    assert shares[True] == pytest.approx(100)
    assert shares[False][:, 0].mean() < 90
