"""What a reranker reads of candidates: titles above them and the text around them."""

import pytest

from precise_rag import HybridIndex, PreciseRAG
from precise_rag.evidence import EvidenceExtractor
from precise_rag.rerank import LevelledReranker, load_reranker, rerank
from precise_rag.rerank.candidate_texts import text_around, with_headings, with_text_around
from precise_rag.rerank.packaged import packaged_reranker
from precise_rag.testing import HashEncoder
from precise_rag.types import Candidate, Document
from support.documents import read_cases
from support.scored import Scored

SENTENCES = ["The mill grinds rye.", "Runa Stell carved its wheel.", "She used oak.", "It turned until 1902."]
TEXT = " ".join(SENTENCES)


def index() -> HybridIndex:
    return HybridIndex.build([Document("mill", TEXT), Document("ferry", "It sails at nine.")], HashEncoder())


def test_text_around_is_cut_between_words() -> None:
    text = "a " + "word " * 60 + "HERE" + " more" * 60
    before, after = text_around(text, text.index("HERE"), text.index("HERE") + 4)
    assert before
    assert after
    assert len(before) <= 160 >= len(after)
    assert set(before.split()) == {"word"}
    assert set(after.split()) == {"more"}
    assert text_around("He left.", 0, 8) == ("", "")


def test_candidates_are_read_in_their_text_and_come_back_without_it() -> None:
    def around() -> dict[str, tuple[str, str]]:
        return {c.text: (c.before, c.after) for c in noting.read}

    noting = Scored(lambda text: 0.5)
    result = PreciseRAG(index(), reranker=noting).retrieve("Who carved the wheel?")
    assert around()[SENTENCES[2]] == (f"{SENTENCES[0]} {SENTENCES[1]} ", f" {SENTENCES[3]}")
    assert around()["It sails at nine."] == ("", "")
    assert len(result.decisions) > 3
    assert all(d.candidate.before == d.candidate.after == "" for d in result.decisions)
    levelled = LevelledReranker(load_reranker("packaged"), noting)
    rerank("Who carved the wheel?", index().search("wheel", 5, returns="sentence"), levelled, index())
    assert around()[SENTENCES[1]][0].strip() == SENTENCES[0]
    EvidenceExtractor(noting).extract("Who?", [Candidate("t", 0, len(TEXT), TEXT, 0.0, "rank")])
    assert around()[SENTENCES[2]][0].endswith(f"{SENTENCES[1]} ")
    no_sentence = Candidate("mill", 3, 9, "mill g", 0.0, "rank")
    assert with_text_around([no_sentence], index()) == [no_sentence]


def test_the_cascade_tells_apart_sentences_that_differ_in_what_stands_before_them() -> None:
    texts = (
        "The pump is red. It is serviced every six months.",
        "The boat is red. It is serviced every six months.",
    )
    documents = [Document(str(n), text) for n, text in enumerate(texts)]
    built = HybridIndex.build(documents, HashEncoder())
    found = [c for c in built.search("months", 10, returns="sentence") if "months" in c.text]
    cascade = load_reranker("cascade")
    best, other = rerank("How often is the pump serviced?", found, cascade, built)
    assert best.doc_id == "0"
    assert best.score > other.score


QUERY = "How often do I service the Borealis M-7 pump?"


def candidate(text: str, above: str = "", **metadata: str) -> Candidate:
    titles = (above,) if above else ()
    return Candidate(f"{above} {text}", 0, len(text), text, 0.5, "cosine", metadata=metadata, above=titles)


def text_read(given: Candidate) -> str:
    (read,) = with_headings(QUERY, [given], packaged_reranker().idf_table)
    return read.text


@pytest.mark.parametrize(("text", "above", "title", "read_above"), read_cases("reranking.json", "titles"))
def test_a_title_with_words_of_the_question_that_the_text_lacks_is_read_before_it(
    text: str, above: str, title: str, read_above: str
) -> None:
    metadata = {"title": title} if title else {}
    assert text_read(candidate(text, above, **metadata)) == read_above + text


def test_a_long_title_does_not_push_the_text_out() -> None:
    text = "Service it once a year."
    read = text_read(candidate(text, "word " * 190 + "Borealis M-7"))
    assert read.endswith(f"Borealis M-7: {text}")
    assert len(read) < 230


@pytest.mark.parametrize("name", ["packaged", "cascade"])
def test_the_page_that_is_asked_about_comes_first_and_other_titles_change_nothing(name: str) -> None:
    reranker = load_reranker(name)
    text = "Change the oil of the pump and service it once a year."
    given = [candidate(text, title=f"{maker} pump") for maker in ("Aurora K-2", "Borealis M-7", "Zephyr T-9")]
    scores = reranker.score(QUERY, given)
    assert scores.argmax() == 1
    assert scores[1] > scores[[0, 2]].max() + 0.05
    plain = [candidate("The lamp is lit at dusk."), candidate("Service the pump once a year.")]
    titled = [candidate(c.text, "Opening hours") for c in plain]
    assert reranker.score(QUERY, titled) == pytest.approx(reranker.score(QUERY, plain), abs=1e-4)
