"""What only nodes of LlamaIndex have: offsets, hidden metadata, relationships and hashes."""

import threading
from typing import Any

import numpy as np
import pytest
from llama_index.core.schema import (
    BaseNode,
    Document,
    NodeRelationship,
    NodeWithScore,
    TextNode,
)

from llamaindex_precise.convert import (
    from_candidate,
    root_offset,
    to_candidates,
    to_core_documents,
)
from precise_rag.types import Candidate


def candidate_of(node: BaseNode, start: int, end: int, **fields) -> Candidate:
    (core,) = to_core_documents([node])
    values = {"score": 0.5, "score_scale": "cosine", "metadata": core.metadata, **fields}
    return Candidate(core.id, start, end, core.text[start:end], **values)


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


def test_metadata_that_llamaindex_refuses_or_cannot_copy_costs_nothing():
    lock = threading.Lock()
    odd: dict[Any, Any] = {1: "one", "lock": lock}
    found = from_candidate(Candidate("d", 0, 4, "Eels", 0.5, "cosine", metadata=odd))
    assert (found.node.metadata["1"], found.node.metadata["lock"]) == ("one", lock)
    long = NodeWithScore(node=TextNode(text="Eels", metadata={"number": 10**5000}), score=0.5)
    assert to_candidates([long])[0].text == "Eels"
    assert to_core_documents([long.node])[0].text == "Eels"
