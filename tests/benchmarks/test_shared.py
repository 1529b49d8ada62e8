"""What the benchmarks share: tables, the evidence that is sent, and times."""

import numpy as np
import pytest

from benchmarks.questions import drawn
from benchmarks.sent import Sent, covered, recall_rows, recalls
from benchmarks.tables import cell, percent, table
from benchmarks.timing import in_turn, percentiles, searched
from precise_rag.evaluation import Dataset, Evidence, Interval, Question
from precise_rag.types import Candidate, Document

TEXT = "Ilse keeps the lamp. Two ferries cross the river."


def candidate(start: int, end: int, doc_id: str = "d") -> Candidate:
    return Candidate(doc_id, start, end, TEXT[start:end], 1.0, "rank")


def test_a_table_has_every_column_and_a_dash_for_what_is_not_a_number() -> None:
    rows = [{"a": "x|y", "n": 1234, "f": 0.25}, {"a": "z", "g": Interval(1.0, -2.0, 3.0), "f": np.nan}]
    lines = table(rows, ".2f").splitlines()
    assert lines[0] == "| a | n | f | g |"
    assert lines[2:] == ["| x\\|y | 1,234 | 0.25 |  |", "| z |  | – | +1.00 (-2.00 to +3.00) |"]
    assert cell(1234.56) == "1,234.6"
    assert percent(Interval(0.5, 0.25, 1.0)) == (50, 25, 100)


def test_covered_counts_each_character_once_and_in_its_document() -> None:
    question = Question("q", "Who?", evidence=(Evidence("d", 0, 10), Evidence("e", 0, 10)))
    pieces = [candidate(0, 6), candidate(4, 8), candidate(20, 30), candidate(0, 10, doc_id="f")]
    assert covered(question, pieces) == pytest.approx(8 / 20)
    assert covered(question, iter([])) == 0


def test_the_gain_of_what_is_sent_is_paired() -> None:
    first = Sent(np.array([0.5, 0.0]), np.array([10, 30]), np.array([1, 1]), ["a", "b"])
    second = first._replace(shares=np.array([0.75, 0.25]))
    row = second.row(first)
    assert row["evidence %"] == pytest.approx(50)
    assert row["tokens"] == pytest.approx(20)
    assert (row["gain"], row["low"], row["high"]) == pytest.approx((25, 25, 25))


def test_recalls_of_searches_are_compared_with_the_first() -> None:
    question = Question("q", "Who keeps the lamp?", evidence=(Evidence("d", 0, 20),))
    dataset = Dataset("s", (Document("d", TEXT),), (question,))
    found = {
        "all": recalls(dataset, lambda query, top_k: [candidate(0, 20)]),
        "none": recalls(dataset, lambda query, top_k: [candidate(21, 49)]),
    }
    assert found["all"] == pytest.approx(100)
    rows = recall_rows("s", found)
    assert [row["200"] for row in rows] == ["100.0", "0.0 (-100.0 [-100.0, -100.0])"]
    assert rows[0]["set (questions)"] == "s (1)"


def test_documents_are_drawn_up_to_a_size_with_the_questions_about_them() -> None:
    documents = tuple(Document(f"{i}", "x" * 100) for i in range(6))
    questions = tuple(Question(f"{i}", "?", evidence=(Evidence(f"{i}", 0, 5),)) for i in range(5))
    chosen, asked = drawn(Dataset("s", documents, questions), 250, seed=3)
    assert len(chosen) == 2
    assert {question.id for question in asked} == {document.id for document in chosen}
    assert drawn(Dataset("s", documents, questions), 10, seed=3)[0] == chosen[:1]


def test_ways_take_turns_and_searches_keep_what_they_find() -> None:
    done: list[str] = []
    took = in_turn({"a": lambda: done.append("a"), "b": lambda: done.append("b")}, rounds=2)
    assert done == ["a", "b", "a", "b"]
    assert {name: len(several) for name, several in took.items()} == {"a": 2, "b": 2}
    found = searched(lambda query, vector: [candidate(0, 6), "row"], [("q", 1.0), ("r", 2.0)])
    assert found.found == [{candidate(0, 6).id, "row"}] * 2
    assert len(found.seconds) == 2
    assert percentiles([0.001, 0.003], "alone") == {"alone, p50 ms": 2.0, "alone, p95 ms": 2.9}
