"""What only nodes of LlamaIndex have: offsets, hidden metadata, relationships and hashes."""

import json
import threading
from typing import Any

import numpy as np
import pytest
from llama_index.core.schema import (
    BaseNode,
    Document,
    MetadataMode,
    NodeRelationship,
    NodeWithScore,
    TextNode,
)

from llamaindex_precise.convert import (
    from_candidate,
    from_selection,
    root_offset,
    to_candidates,
    to_core_documents,
)
from precise_rag.facts import FACTS_KEY, piece_id, write_facts
from precise_rag.types import Candidate, Selection


def candidate_of(node: BaseNode, start: int, end: int, **fields) -> Candidate:
    (core,) = to_core_documents([node])
    values = {"score": 0.5, "score_scale": "cosine", "metadata": core.metadata, **fields}
    return Candidate(core.id, start, end, core.text[start:end], **values)


def test_a_node_made_for_a_candidate_knows_its_place_shows_no_facts_and_shares_nothing(documents):
    item = from_candidate(candidate_of(documents[0], 0, 45))
    node = item.node
    assert node.text == documents[0].text[node.start_char_idx : node.end_char_idx]
    assert (node.node_id, node.ref_doc_id) == (piece_id("lighthouse", 0, 45), "lighthouse")
    assert isinstance(node.metadata[FACTS_KEY], str)
    for mode in (MetadataMode.EMBED, MetadataMode.LLM):
        assert node.get_content(mode) == f"title: Lamps\n\n{node.text}".strip()
    assert json.loads(item.to_json())["score"] == 0.5
    node.excluded_llm_metadata_keys.append("title")
    assert documents[0].excluded_llm_metadata_keys == ["secret"]


def test_a_piece_of_a_node_points_to_the_root_document(documents):
    text = documents[0].text
    parent = TextNode(id_="n1", text=text[100:200], start_char_idx=100, end_char_idx=200)
    parent.relationships = {NodeRelationship.SOURCE: documents[0].as_related_node_info()}
    node = from_candidate(candidate_of(parent, 10, 30)).node
    assert (node.ref_doc_id, node.start_char_idx, node.end_char_idx) == ("lighthouse", 110, 130)


@pytest.mark.parametrize(("start", "end", "offset"), [(None, None, None), (5, 9, None), (5, 8, 5)])
def test_an_offset_counts_only_if_the_text_lies_there_verbatim(documents, start, end, offset):
    node = TextNode(text="abc", start_char_idx=start, end_char_idx=end)
    assert root_offset(node) == 0
    node.relationships = {NodeRelationship.SOURCE: documents[0].as_related_node_info()}
    assert root_offset(node) == offset


def test_one_piece_found_twice_has_one_hash_and_equal_pieces_have_two():
    document = Document(doc_id="d", text="One. One.")
    first = from_candidate(candidate_of(document, 0, 4, score=0.5)).node
    again = from_candidate(candidate_of(document, 0, 4, score=0.9, scores={"bm25": 1.0})).node
    other = from_candidate(candidate_of(document, 5, 9, score=0.5)).node
    assert first.hash == again.hash != other.hash


def test_foreign_nodes_are_read_as_their_embedding_model_saw_them():
    node = TextNode(id_="n", text="Body.", metadata={"title": "T", "path": "/x"})
    node.excluded_embed_metadata_keys = ["path"]
    items = [NodeWithScore(node=node, score=np.float32(0.25))]
    (candidate,) = to_candidates(items, "probability")
    assert candidate.text == "title: T\n\nBody."
    assert (candidate.id, candidate.score_scale) == ("n:0-5", "probability")
    assert type(candidate.score) is float


def test_no_score_is_invented():
    items = [NodeWithScore(node=TextNode(text=text)) for text in ("a", "b")]
    kept = from_selection(Selection.of([(to_candidates(items, "probability")[1], True, "good")]))
    assert [(item.node.text, item.score) for item in kept] == [("b", None)]


def test_facts_that_a_store_has_changed_or_about_another_score_are_ignored():
    for facts in (
        "x",
        {"doc_id": 1, "start": "x", "passage": "x", "scores": [1], "n_tokens": "7"},
        {"doc_id": "d", "start": 0, "end": 10, "score": 0.5, "score_scale": "odd"},
        {"doc_id": "d", "start": 0, "end": 9, "score": 0.5, "score_scale": "cosine"},
        {"doc_id": "d", "start": 0, "end": 10, "score": 0.9, "score_scale": "cosine"},
    ):
        text = facts if isinstance(facts, str) else write_facts(facts)
        node = TextNode(text="Eels swim.", id_="n", metadata={FACTS_KEY: text})
        [candidate] = to_candidates([NodeWithScore(node=node, score=0.5)])
        assert (candidate.score, candidate.score_scale, candidate.passage) == (0.0, "rank", None)


def test_metadata_that_llamaindex_refuses_or_cannot_copy_costs_nothing():
    lock = threading.Lock()
    odd: dict[Any, Any] = {1: "one", "lock": lock}
    found = from_candidate(Candidate("d", 0, 4, "Eels", 0.5, "cosine", metadata=odd))
    assert (found.node.metadata["1"], found.node.metadata["lock"]) == ("one", lock)
    long = NodeWithScore(node=TextNode(text="Eels", metadata={"number": 10**5000}), score=0.5)
    assert to_candidates([long])[0].text == "Eels"
    assert to_core_documents([long.node])[0].text == "Eels"
