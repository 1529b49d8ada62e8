import pytest

from precise_rag.errors import InputError
from precise_rag.excerpts import excerpts_of
from precise_rag.facts import candidate_facts
from precise_rag.reading import check_unanswered, read_selection, reading_note
from precise_rag.types import Candidate, Selection

TEXT = "The ferry leaves at nine. "
CANDIDATES = [
    Candidate(name, 10, 10 + len(TEXT), TEXT, score, "probability")
    for name, score in (("a", 0.9), ("b", 0.4))
]
SELECTION = Selection.keep_all(CANDIDATES, "likely")


def read(reader, unanswered="send"):
    return read_selection("When?", SELECTION, excerpts_of(SELECTION), reader, unanswered)


def test_excerpts_and_facts_hold_the_answer_in_them(word_reader) -> None:
    found = read(word_reader("nine", 0.8))
    assert found == SELECTION
    assert [answer.doc_id for answer in found.answers] == ["a", "b"]
    for order in ("document", "score"):
        for excerpt in excerpts_of(found, order):
            assert excerpt.answer is not None
            assert excerpt.text[excerpt.answer.start - 10 : excerpt.answer.end - 10] == "nine"
            facts = candidate_facts(excerpt)
            assert facts["answered"] == 0.8
            assert facts["answer"] == {
                "start": 30,
                "end": 34,
                "probability": pytest.approx(excerpt.answer.probability),
            }
    assert reading_note(found) == "answered with a probability of 0.80, most probably: nine"


def test_without_an_answer_only_the_probability_is_a_fact(word_reader) -> None:
    (first, _) = excerpts_of(read(word_reader("noon", 0.3)))
    assert first.answer is None
    facts = candidate_facts(first)
    assert "answer" not in facts
    assert facts["answered"] == 0.3
    (first, _) = excerpts_of(SELECTION)
    assert not {"answer", "answered"} & candidate_facts(first).keys()


@pytest.mark.parametrize(("answered", "n_kept"), [(0.19, 0), (0.21, 2), (None, 2)])
def test_empty_keeps_nothing_that_probably_does_not_answer(word_reader, answered, n_kept) -> None:
    found = read(word_reader("nine", answered), "empty")
    assert len(found.kept) == n_kept
    assert found.answered == answered
    assert len(found.decisions) == 2
    if not n_kept:
        assert found.answers == ()
        assert all('0.19 (unanswered="empty")' in reason for reason in found.reasons)
    assert len(read(word_reader("nine", answered)).kept) == 2


def test_what_is_no_reader_and_no_option_is_refused() -> None:
    class Empty:
        def read(self, query, texts):
            return []

    with pytest.raises(InputError, match=r"Empty.read must return a Reading"):
        read(Empty())
    with pytest.raises(InputError, match='unanswered must be "send" or "empty"'):
        check_unanswered("never")


def test_a_selection_that_was_not_read_says_so(word_reader) -> None:
    assert reading_note(read(word_reader("nine", None))).startswith("not read")
