"""What only documents of LangChain have: no id, and scores of others in their metadata."""

from dataclasses import replace

import pytest
from langchain_core.documents import Document

from langchain_precise.convert import from_candidate, to_candidates, to_core_documents
from precise_rag.types import Candidate

FOUND = Candidate("guide", 5, 9, "Eels", 0.25, "probability")


def test_documents_keep_their_ids_and_nameless_ones_get_ids_from_their_text():
    given = [Document("a", id="x"), Document("a"), Document("a"), Document("b")]
    named, first, second, other = to_core_documents(given)
    assert named.id == "x"
    assert first.id == to_core_documents([Document("a")])[0].id
    assert second.id == f"{first.id}#2"
    assert other.id not in (first.id, second.id)


def test_a_score_of_another_component_counts_if_it_was_written_since():
    document = from_candidate(FOUND)
    document.metadata["relevance_score"] = 0.9
    before = from_candidate(replace(FOUND, metadata={"relevance_score": 0.9}))
    assert before.metadata["relevance_score"] == 0.9
    for given, scale, expected in (
        (document, None, (0.0, "rank")),
        (document, "cosine", (0.9, "cosine")),
        (before, None, (0.25, "probability")),
    ):
        [candidate] = to_candidates([given], scale)
        assert (candidate.score, candidate.score_scale) == expected


@pytest.mark.parametrize("ids", [["a", "a", "a#2"], ["a#2", "a", "a"], ["a", "a", "a"], [None, None, None]])
def test_documents_with_one_id_are_told_apart(ids):
    documents = [Document(f"same{i if all(ids) else ''}", id=name) for i, name in enumerate(ids)]
    assert len({document.id for document in to_core_documents(documents)}) == 3
    candidates = to_candidates(documents)
    assert len({candidate.id for candidate in candidates}) == 3
    repeated = to_candidates([Document("a", id="x")] * 3)
    assert [one.id for one in repeated] == ["x:0-1", "x#2:0-1", "x#3:0-1"]
