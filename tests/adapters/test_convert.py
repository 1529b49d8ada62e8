"""Candidates become pieces and come back: facts, scores and ids are kept, and nothing is shared."""

import copy
import json
import pickle
import threading
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_core.load import dumpd
from llama_index.core.schema import BaseNode, NodeRelationship, NodeWithScore, TextNode
from llama_index.core.schema import Document as LlamaIndexDocument

from langchain_precise import convert as langchain
from llamaindex_precise import convert as llamaindex
from precise_rag.facts import candidate_facts, piece_id, read_facts
from precise_rag.selection import GradientSelector
from precise_rag.types import Candidate, Selection, Span, best_first
from support.frameworks import FRAMEWORKS, LLAMAINDEX, each_framework

NOTED: dict[str, Any] = {"n_tokens": 2, "passage": Span(0, 40), "scores": {"dense": 0.5}, "above": ("Fish",)}
FOUND = Candidate("guide", 5, 9, "Eels", 0.25, "probability", metadata={"tags": ["fish"]}, **NOTED)


@each_framework
def test_a_candidate_becomes_a_piece_that_shares_nothing_and_comes_back(framework):
    piece = framework.convert.from_candidate(FOUND)
    assert (framework.id(piece), framework.text(piece)) == (piece_id("guide", 5, 9), "Eels")
    assert read_facts(piece) == candidate_facts(FOUND)
    metadata = framework.metadata(piece)
    assert json.loads(json.dumps(metadata)) == metadata
    assert metadata.keys() == {"tags", "precise"}
    metadata["tags"].append("changed")
    assert FOUND.metadata["tags"] == ["fish"]
    [again] = framework.convert.to_candidates([piece])
    assert replace(again, metadata=FOUND.metadata) == FOUND


@each_framework
def test_pieces_without_comparable_scores_are_in_the_order_given(framework):
    scored = framework.convert.from_candidate(FOUND)
    bm25 = framework.convert.from_candidate(Candidate("other", 0, 1, "x", 8.0, "bm25"))
    plain = [framework.piece(text, text) for text in "abc"]
    for pieces in (plain, [scored, bm25], [plain[0], scored]):
        candidates = framework.convert.to_candidates(pieces)
        assert [(c.score, c.score_scale) for c in candidates] == [(-i, "rank") for i in range(len(pieces))]


@each_framework
@pytest.mark.parametrize("odd", [None, float("nan"), float("inf"), "0.5", [1], 10**400])
def test_an_odd_score_is_set_aside_and_costs_the_others_nothing(framework, odd):
    if framework is LLAMAINDEX and not isinstance(odd, float | None):
        pytest.skip("its nodes have no such score")
    pieces = [framework.piece(n, n, s) for n, s in (("a0", 0.5), ("b", odd), ("a1", 0.4))]
    selection = GradientSelector().select(framework.convert.to_candidates(pieces, "probability"))
    assert [(c.doc_id, c.score) for c in selection.kept] == [("a0", 0.5), ("a1", 0.4)]
    assert selection.reasons[-1] == "it has no usable score"
    every = framework.convert.from_selection(Selection.keep_all(d.candidate for d in selection.decisions))
    again = framework.convert.to_candidates(every)
    assert [c.doc_id for c in best_first(again)] == ["a0", "a1", "b"]


@each_framework
@pytest.mark.parametrize("odd", [{"end": 9}, {"score": 0.9}, {"score_scale": "odd"}])
def test_facts_that_do_not_fit_the_text_and_its_score_are_not_believed(framework, odd):
    facts = {"doc_id": "d", "start": 5, "end": 8, "score": 0.5, "score_scale": "cosine", **odd}
    piece = framework.piece("Eel", "own", 0.5, precise=json.dumps(facts))
    [candidate] = framework.convert.to_candidates([piece])
    place = ("own", 0, 3) if "end" in odd else ("d", 5, 8)
    assert (candidate.doc_id, candidate.start, candidate.end) == place
    assert (candidate.score, candidate.score_scale) == (0.0, "rank")


@each_framework
def test_kept_pieces_are_copies_in_the_order_of_the_selection(framework):
    lock = threading.Lock()  # what cannot be copied is shared
    pieces = [
        framework.piece("a", "1", n=[1], lock=lock),
        framework.piece("b", "2"),
        framework.piece("c", "3"),
    ]
    a, b, c = framework.convert.to_candidates(pieces)
    scored = replace(c, score=0.75, score_scale="probability")
    selection = Selection.of([(scored, True, "good"), (a, True, "first"), (b, False, "bad")])
    kept = framework.convert.from_selection(selection)
    assert [framework.id(piece) for piece in kept] == ["3", "1"]
    assert [read_facts(piece)["reason"] for piece in kept] == ["good", "first"]
    assert framework.score(kept[0]) == read_facts(kept[0])["score"] == 0.75
    assert all("relevance_score" not in framework.metadata(piece) for piece in kept)
    framework.metadata(kept[1])["n"].append(2)
    assert framework.metadata(pieces[0]) == {"n": [1], "lock": lock}
    assert framework.metadata(kept[1])["lock"] is lock


@given(
    st.lists(
        st.tuples(st.text(max_size=5), st.text(min_size=1, max_size=2), st.floats(0, 1)),
        max_size=6,
        unique_by=lambda one: one[1],
    )
)
def test_every_piece_gets_a_candidate_of_its_own_and_is_left_alone(given):
    for framework in FRAMEWORKS.values():
        pieces = [framework.piece(*one) for one in given]
        before = copy.deepcopy(pieces)
        candidates = framework.convert.to_candidates(pieces, "probability")
        assert [c.text for c in candidates] == [text for text, *_ in given]
        assert len({c.id for c in candidates}) == len(pieces)
        assert pieces == before


# What only documents of LangChain have: no id, and scores of others in their metadata.


def test_documents_keep_their_ids_and_nameless_ones_get_ids_from_their_text():
    several = [Document("a", id="x"), Document("a"), Document("a"), Document("b")]
    named, first, second, other = langchain.to_core_documents(several)
    assert named.id == "x"
    assert first.id == langchain.to_core_documents([Document("a")])[0].id
    assert second.id == f"{first.id}#2"
    assert other.id not in (first.id, second.id)


def test_a_score_of_another_component_counts_if_it_was_written_since():
    document = langchain.from_candidate(FOUND)
    document.metadata["relevance_score"] = 0.9
    before = langchain.from_candidate(replace(FOUND, metadata={"relevance_score": 0.9}))
    assert before.metadata["relevance_score"] == 0.9
    for one, scale, expected in (
        (document, None, (0.0, "rank")),
        (document, "cosine", (0.9, "cosine")),
        (before, None, (0.25, "probability")),
    ):
        [candidate] = langchain.to_candidates([one], scale)
        assert (candidate.score, candidate.score_scale) == expected


def test_what_two_questions_find_is_one_document_and_leaves_as_langchains_own():
    titled = replace(FOUND, metadata={"source": "s", "tags": ["fish"]})
    kept = [(titled, True, "q"), (titled, True, ""), (replace(titled, scores={}, score=0.5), True, "")]
    found, *again = langchain.from_selection(Selection.of(kept))
    assert [one.metadata["section"] for one in (found, *again)] == ["Fish"] * 3
    stock = Document("Eels", id=found.id, metadata=titled.metadata)
    assert all(found == one == found for one in (*again, stock, found.model_copy()))
    other = replace(titled, end=10), replace(titled, text="Cods"), replace(titled, metadata={"source": "t"})
    mine = Document("Eels", id=found.id, metadata={**titled.metadata, "section": "mine"})
    assert not [one for one in (*map(langchain.from_candidate, other), mine, 1) if one == found]
    written = pickle.loads(pickle.dumps(found))
    assert (type(written), written.metadata) == (Document, found.metadata)
    assert (repr(found), dumpd(found)) == (repr(written), dumpd(written))


@pytest.mark.parametrize("ids", [["a", "a", "a#2"], ["a#2", "a", "a"], ["a", "a", "a"], [None, None, None]])
def test_documents_with_one_id_are_told_apart(ids):
    documents = [Document(f"same{i if all(ids) else ''}", id=name) for i, name in enumerate(ids)]
    assert len({document.id for document in langchain.to_core_documents(documents)}) == 3
    candidates = langchain.to_candidates(documents)
    assert len({candidate.id for candidate in candidates}) == 3
    repeated = langchain.to_candidates([Document("a", id="x")] * 3)
    assert [one.id for one in repeated] == ["x:0-1", "x#2:0-1", "x#3:0-1"]


def test_the_chunks_of_stock_splitters_have_their_place_in_the_document_of_their_source():
    def place(start, **metadata):
        chunk = Document("Eels", id="chunk", metadata={"start_index": start, **metadata})
        [candidate] = langchain.to_candidates([chunk])
        assert langchain.from_candidate(candidate).metadata["start_index"] == start
        return candidate.doc_id, candidate.start

    first = place(40, source="a.md", page=1)
    assert place(80.0, source="a.md", page=1, _id="x", relevance_score=0.5) == (first[0], 80)
    others = [place(40, source="a.md", page=2), place(40, source="b.md", page=1)]
    assert len({first, *others}) == 3
    assert {start for _, start in (first, *others)} == {40}
    assert place(40) == ("chunk", 0)
    assert place(-1, source="a.md") == place("4", source="a.md") == ("chunk", 0)
    here = {"source": "a.md", "start_index": 5}
    agreeing = [Document(text, metadata=here) for text in ("swim. Cods", "swim.", "swim.")]
    names = [one.doc_id for one in langchain.to_candidates(agreeing)]
    assert names[1:] == [names[0], f"{names[0]}#2"]
    two = langchain.to_candidates([*agreeing, Document("sleep", metadata=here, id="other")])
    assert len({one.doc_id for one in two}) == 4
    assert {langchain.from_candidate(one).metadata["start_index"] for one in two} == {5}


# What only nodes of LlamaIndex have: offsets, hidden metadata, relationships and hashes.


def candidate_of(node: BaseNode, start: int, end: int, **fields) -> Candidate:
    (core,) = llamaindex.to_core_documents([node])
    values = {"score": 0.5, "score_scale": "cosine", "metadata": core.metadata, **fields}
    return Candidate(core.id, start, end, core.text[start:end], **values)


@pytest.mark.parametrize(("start", "end", "offset"), [(None, None, None), (5, 9, None), (5, 8, 5)])
def test_an_offset_counts_only_if_the_text_lies_there_verbatim(start, end, offset):
    node = TextNode(text="abc", start_char_idx=start, end_char_idx=end)
    assert llamaindex.root_offset(node) == 0
    node.relationships = {NodeRelationship.SOURCE: LlamaIndexDocument(text="abc").as_related_node_info()}
    assert llamaindex.root_offset(node) == offset


def test_one_piece_found_twice_has_one_hash_and_equal_pieces_have_two():
    document = LlamaIndexDocument(doc_id="d", text="One. One.")
    first = llamaindex.from_candidate(candidate_of(document, 0, 4, score=0.5)).node
    again = llamaindex.from_candidate(candidate_of(document, 0, 4, score=0.9, scores={"bm25": 1.0})).node
    other = llamaindex.from_candidate(candidate_of(document, 5, 9, score=0.5)).node
    assert first.hash == again.hash != other.hash


def test_foreign_nodes_are_read_as_their_embedding_model_saw_them():
    node = TextNode(id_="n", text="Body.", metadata={"title": "T", "path": "/x"})
    node.excluded_embed_metadata_keys = ["path"]
    items = [NodeWithScore(node=node, score=np.float32(0.25))]
    (candidate,) = llamaindex.to_candidates(items, "probability")
    assert candidate.text == "title: T\n\nBody."
    assert (candidate.id, candidate.score_scale) == ("n:0-5", "probability")
    assert type(candidate.score) is float


def test_metadata_that_llamaindex_refuses_or_cannot_copy_costs_nothing():
    lock = threading.Lock()
    odd: dict[Any, Any] = {1: "one", "lock": lock}
    found = llamaindex.from_candidate(Candidate("d", 0, 4, "Eels", 0.5, "cosine", metadata=odd))
    assert (found.node.metadata["1"], found.node.metadata["lock"]) == ("one", lock)
    long = NodeWithScore(node=TextNode(text="Eels", metadata={"number": 10**5000}), score=0.5)
    assert llamaindex.to_candidates([long])[0].text == "Eels"
    assert llamaindex.to_core_documents([long.node])[0].text == "Eels"
