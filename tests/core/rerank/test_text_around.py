"""Tests of what a reranker reads around candidates."""

from collections.abc import Sequence

import numpy as np

from precise_rag import HybridIndex, PreciseRAG
from precise_rag.evidence import EvidenceExtractor
from precise_rag.rerank import LevelledReranker, load_reranker, rerank
from precise_rag.rerank.candidate_texts import text_around, with_text_around
from precise_rag.testing import HashEncoder
from precise_rag.types import Candidate, Document, FloatArray, ScoreScale

SENTENCES = ["The mill grinds rye.", "Runa Stell carved its wheel.", "She used oak.", "It turned until 1902."]
TEXT = " ".join(SENTENCES)


class Listens:
    """A reranker that keeps what it was given."""

    name, reads_around = "listens", True
    score_scale: ScoreScale = "probability"
    is_calibrated = True

    def __init__(self) -> None:
        self.heard: dict[str, tuple[str, str]] = {}

    def score(self, query: str, candidates: Sequence[Candidate]) -> FloatArray:
        self.heard = {c.text: (c.before, c.after) for c in candidates}
        return np.full(len(candidates), 0.5, dtype=np.float32)


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


def test_candidates_are_given_the_text_of_their_document_around_them() -> None:
    found = index().search("Who carved the wheel?", 10, returns="sentence")
    around = {c.text: (c.before, c.after) for c in with_text_around(found, index())}
    assert around[SENTENCES[1]] == (SENTENCES[0] + " ", f" {SENTENCES[2]} {SENTENCES[3]}")
    assert around["It sails at nine."] == ("", "")


def test_a_candidate_that_is_no_sentence_of_the_source_is_given_none() -> None:
    stranger = Candidate("mill", 3, 9, "mill g", 0.0, "rank")
    assert with_text_around([stranger], index()) == [stranger]


def test_what_a_pipeline_reranks_is_read_in_its_text_and_comes_back_without_it() -> None:
    listens = Listens()
    result = PreciseRAG(index(), reranker=listens).retrieve("Who carved the wheel?")
    assert listens.heard[SENTENCES[2]] == (f"{SENTENCES[0]} {SENTENCES[1]} ", f" {SENTENCES[3]}")
    assert len(result.decisions) > 3
    assert all(d.candidate.before == d.candidate.after == "" for d in result.decisions)


def test_a_reranker_that_does_not_read_it_costs_no_search_for_neighbours() -> None:
    class Blind(Listens):
        reads_around = False

    blind = Blind()
    source = index()
    source.neighbours = None  # type: ignore[assignment]
    rerank("Who?", source.search("mill", 3, returns="sentence"), blind, source)
    assert blind.heard[SENTENCES[0]] == ("", "")


def test_the_levels_of_a_reranker_that_is_brought_are_read_in_their_text() -> None:
    listens = Listens()
    brought = LevelledReranker(load_reranker("packaged"), listens)
    rerank("Who carved the wheel?", index().search("wheel", 5, returns="sentence"), brought, index())
    assert listens.heard[SENTENCES[1]][0].strip() == SENTENCES[0]


def test_sentences_of_texts_that_a_store_returned_are_read_in_them() -> None:
    listens = Listens()
    EvidenceExtractor(listens).extract("Who?", [Candidate("t", 0, len(TEXT), TEXT, 0.0, "rank")])
    assert listens.heard[SENTENCES[2]][0].endswith(f"{SENTENCES[1]} ")


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
