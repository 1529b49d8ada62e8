import copy
import json
import threading
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document

from langchain_precise.convert import from_candidate, from_selection, to_candidates, to_core_documents
from precise_rag.facts import piece_id, read_facts
from precise_rag.selection import GradientSelector
from precise_rag.types import Candidate, Selection, Span, best_first

FOUND = Candidate(
    "guide",
    5,
    9,
    "Eels",
    0.25,
    "probability",
    n_tokens=2,
    passage=Span(0, 40),
    scores={"dense": 0.5},
    metadata={"tags": ["fish"]},
)


def test_documents_keep_their_ids_and_nameless_ones_get_ids_from_their_text():
    named, first, second, other = to_core_documents(
        [Document("a", id="x"), Document("a"), Document("a"), Document("b")]
    )
    again = to_core_documents([Document("a")])
    assert named.id == "x"
    assert first.id == again[0].id
    assert second.id == f"{first.id}#2"
    assert other.id not in (first.id, second.id)


def test_a_candidate_becomes_a_document_with_its_place_and_score():
    document = from_candidate(FOUND)
    assert document == Document(
        id=piece_id("guide", 5, 9),
        page_content="Eels",
        metadata={"tags": ["fish"], "precise": document.metadata["precise"]},
    )
    assert read_facts(document) == {
        "doc_id": "guide",
        "start": 5,
        "end": 9,
        "score": 0.25,
        "score_scale": "probability",
        "scores": {"dense": 0.5},
        "n_tokens": 2,
        "passage": [0, 40],
    }
    assert type(read_facts(document)["score"]) is float
    assert json.loads(json.dumps(document.metadata)) == document.metadata


def test_results_share_nothing_that_can_be_changed_with_the_index():
    from_candidate(FOUND).metadata["tags"].append("changed")
    assert FOUND.metadata["tags"] == ["fish"]


def test_a_candidate_survives_the_way_out_and_back():
    [candidate] = to_candidates([from_candidate(FOUND)])
    assert candidate.id == FOUND.id
    for field in ("doc_id", "start", "end", "text", "score", "score_scale", "n_tokens", "passage", "scores"):
        assert getattr(candidate, field) == getattr(FOUND, field)


def test_a_score_that_another_component_wrote_since_counts():
    document = from_candidate(FOUND)
    document.metadata["relevance_score"] = 0.9
    [candidate] = to_candidates([document])
    assert (candidate.score, candidate.score_scale) == (0.0, "rank")
    [candidate] = to_candidates([document], "cosine")
    assert (candidate.score, candidate.score_scale) == (0.9, "cosine")


def test_a_score_that_another_component_wrote_before_stays_and_does_not_count():
    found = replace(FOUND, metadata={"relevance_score": 0.9})
    document = from_candidate(found)
    assert document.metadata["relevance_score"] == 0.9
    [candidate] = to_candidates([document])
    assert (candidate.score, candidate.score_scale) == (0.25, "probability")


def test_documents_without_scores_are_in_the_order_given():
    scores = [c.score for c in to_candidates([Document("a"), Document("b"), Document("c")])]
    assert scores == sorted(scores, reverse=True)
    assert len(set(scores)) == 3


def test_scores_on_several_scales_are_not_compared():
    bm25 = Candidate("other", 0, 1, "x", 8.0, "bm25")
    candidates = to_candidates([from_candidate(FOUND), from_candidate(bm25)])
    assert [c.score_scale for c in candidates] == ["rank", "rank"]
    assert candidates[0].score > candidates[1].score


def test_one_missing_score_leaves_the_order_given():
    scored = from_candidate(FOUND)
    candidates = to_candidates([Document("b"), scored])
    assert [c.score_scale for c in candidates] == ["rank", "rank"]


@pytest.mark.parametrize("odd", [None, float("nan"), float("inf"), "0.5", [1], 10**400])
def test_an_odd_score_is_set_aside_and_costs_the_others_nothing(odd):
    bad = Document("b", id="b", metadata={} if odd is None else {"relevance_score": odd})
    good = [Document(f"a{i}", id=f"a{i}", metadata={"relevance_score": 0.5 - i / 10}) for i in range(2)]
    selection = GradientSelector().select(to_candidates([good[0], bad, good[1]], "probability"))
    assert [c.doc_id for c in selection.kept] == ["a0", "a1"]
    assert [c.score for c in selection.kept] == pytest.approx([0.5, 0.4])
    assert selection.reasons[-1] == "it has no usable score"
    again = to_candidates(from_selection(Selection.keep_all(selection.kept + selection.dropped)))
    assert [c.doc_id for c in best_first(again)] == ["a0", "a1", "b"]


@pytest.mark.parametrize("ids", [["a", "a", "a#2"], ["a#2", "a", "a"], ["a", "a", "a"], [None, None, None]])
def test_documents_with_one_id_are_told_apart(ids):
    documents = [Document(f"same{i if all(ids) else ''}", id=name) for i, name in enumerate(ids)]
    assert len({document.id for document in to_core_documents(documents)}) == 3
    candidates = to_candidates(documents)
    assert len({candidate.id for candidate in candidates}) == 3
    kept = from_selection(Selection.keep_all(candidates))
    assert [document.page_content for document in kept] == [document.page_content for document in documents]


def test_metadata_that_cannot_be_copied_is_shared():
    lock = threading.Lock()
    [candidate] = to_candidates([Document("a", metadata={"lock": lock, "n": [1]})])
    [kept] = from_selection(Selection.keep_all([candidate]))
    assert kept.metadata["lock"] is lock
    assert kept.metadata["n"] == [1]


def test_repeated_documents_are_told_apart():
    ids = [c.id for c in to_candidates([Document("a", id="x")] * 3)]
    assert ids == ["x:0-1", "x#2:0-1", "x#3:0-1"]


def test_a_place_that_does_not_fit_the_text_is_not_believed():
    stripped = from_candidate(FOUND).model_copy(update={"page_content": "Eel"})
    [candidate] = to_candidates([stripped])
    assert (candidate.doc_id, candidate.start, candidate.end) == (stripped.id, 0, 3)
    assert (candidate.score_scale, candidate.n_tokens, candidate.passage) == ("rank", None, None)


def test_kept_documents_are_copies_in_the_order_of_the_selection():
    documents = [Document("a", id="1", metadata={"n": [1]}), Document("b", id="2"), Document("c", id="3")]
    before = copy.deepcopy(documents)
    a, b, c = to_candidates(documents)
    scored = replace(c, score=0.75, score_scale="probability")
    selection = Selection.of([(scored, True, "good"), (a, True, "first"), (b, False, "bad")])

    kept = from_selection(selection)

    assert [d.id for d in kept] == ["3", "1"]
    assert read_facts(kept[0])["score"] == 0.75
    assert read_facts(kept[0])["reason"] == "good"
    assert all("relevance_score" not in document.metadata for document in kept)
    kept[1].metadata["n"].append(2)
    assert documents == before


@given(
    st.lists(
        st.builds(
            Document,
            st.text(max_size=5),
            id=st.none() | st.text(min_size=1, max_size=2),
            metadata=st.fixed_dictionaries({}, optional={"relevance_score": st.floats(0, 1)}),
        ),
        max_size=6,
    )
)
def test_every_document_gets_a_candidate_of_its_own_and_is_left_alone(documents):
    before = copy.deepcopy(documents)
    candidates = to_candidates(documents, "probability")
    assert [c.text for c in candidates] == [d.page_content for d in documents]
    assert len({c.id for c in candidates}) == len(documents)
    assert documents == before
