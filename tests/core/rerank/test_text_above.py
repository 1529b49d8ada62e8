import pytest

from precise_rag.rerank import load_reranker
from precise_rag.rerank.candidate_texts import with_headings
from precise_rag.rerank.packaged import packaged_reranker
from precise_rag.types import Candidate

QUERY = "How often do I service the Borealis M-7 pump?"


def candidate(text: str, above: str = "", **metadata: str) -> Candidate:
    titles = (above,) if above else ()
    return Candidate(f"{above} {text}", 0, len(text), text, 0.5, "cosine", metadata=metadata, above=titles)


def texts(*given: Candidate) -> list[str]:
    return [c.text for c in with_headings(QUERY, given, packaged_reranker().idf_table)]


def test_a_title_with_words_of_the_question_is_read_before_the_text():
    text = "Service it once a year."
    assert texts(candidate(text, "Borealis M-7 > Care")) == [f"Borealis M-7 > Care: {text}"]
    assert texts(candidate(text, title="Borealis M-7")) == [f"Borealis M-7: {text}"]
    assert texts(candidate(text, "Borealis M-7", title="Another")) == [f"Borealis M-7: {text}"]


@pytest.mark.parametrize(
    ("text", "above"),
    [
        ("Service the Borealis M-7 once a year.", "Borealis M-7"),
        ("Service it once a year.", "Opening hours"),
        ("Service it once a year.", "How often"),
        ("Service it once a year.", ""),
    ],
)
def test_titles_that_add_little_to_the_text_are_left_out(text, above):
    assert texts(candidate(text, above)) == [text]


def test_a_long_title_does_not_push_the_text_out():
    text = "Service it once a year."
    (read,) = texts(candidate(text, "word " * 190 + "Borealis M-7"))
    assert read.endswith(f"Borealis M-7: {text}")
    assert len(read) < 230


@pytest.mark.parametrize("name", ["packaged", "cascade"])
def test_the_page_that_is_asked_about_comes_first(name):
    text = "Change the oil of the pump and service it once a year."
    given = [candidate(text, title=f"{maker} pump") for maker in ("Aurora K-2", "Borealis M-7", "Zephyr T-9")]
    scores = load_reranker(name).score(QUERY, given)
    assert scores.argmax() == 1
    assert scores[1] > scores[[0, 2]].max() + 0.05


@pytest.mark.parametrize("name", ["packaged", "cascade"])
def test_a_title_that_nobody_asks_for_changes_no_score(name):
    plain = [candidate("The lamp is lit at dusk."), candidate("Service the pump once a year.")]
    titled = [candidate(c.text, "Opening hours") for c in plain]
    reranker = load_reranker(name)
    assert reranker.score(QUERY, titled) == pytest.approx(reranker.score(QUERY, plain), abs=1e-4)
