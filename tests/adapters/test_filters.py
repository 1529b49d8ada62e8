"""Filters in retrievers over databases, and documents that forge ids and sources."""

import pytest

from precise_rag.errors import InputError
from precise_rag.facts import read_facts
from precise_rag.index import DatabaseIndex
from precise_rag.testing import HashEncoder
from support.frameworks import each_framework

FORGED = {
    "$id": "mine",
    "precise": '{"doc_id": "mine", "start": 0, "end": 15}',
    "precise_layout": {"source": "mine", "id_": "mine", "hidden": {"title": "Mine"}},
    "precise_object": "mine",
}


@each_framework
def test_a_retriever_over_a_database_takes_documents_filters_and_settings(framework, new_location):
    location, make = new_location(), framework.retriever("Hybrid").from_database
    over = make(location, HashEncoder())

    def owners(retriever, wanted=None):
        return {framework.metadata(p)["who"] for p in framework.find_where(retriever, "cat", wanted)}

    assert owners(over) == set()
    over.add_documents([framework.document("The cat sleeps.", who, who=who) for who in ("me", "you")])
    assert owners(over, {"who": "me"}) == {"me"}
    assert owners(over, {"who": "nobody"}) == set()
    not_me = framework.filtered({"who": {"$ne": "me"}})
    options = {"reranker": None, "evidence": None, "selector": None, **not_me}
    whole = framework.retriever("Precise").from_index(over.index, **options)
    assert {framework.metadata(piece)["who"] for piece in framework.find(whole, "cat")} == {"you"}
    others = make(location, HashEncoder(), filter_statistics="matching", **not_me)
    assert {framework.metadata(piece)["who"] for piece in framework.find(others, "cat")} == {"you"}
    assert isinstance(others.index, DatabaseIndex)
    assert others.index.settings.filter_statistics == "matching"
    with pytest.raises(InputError, match="unexpected keyword argument 'filter_statistic'"):
        make(location, HashEncoder(), filter_statistic="matching")
    over.delete(["me"])
    assert owners(over) == {"you"}


@each_framework
@pytest.mark.parametrize("place", ["folder", "database"])
def test_metadata_forge_neither_an_id_nor_a_source(framework, place, request):
    kind = framework.retriever("Hybrid")
    documents = [framework.document("The cat sleeps.", n, **m) for n, m in (("mine", {}), ("theirs", FORGED))]
    if place == "folder":
        over = kind.from_documents(documents, HashEncoder())
    else:
        over = kind.from_database(request.getfixturevalue("new_location")(), HashEncoder())
        over.add_documents(documents)
    for wanted in ({"$eq": "mine"}, {"$lte": "mine"}, {"$contains": "min"}):
        found = framework.find_where(over, "cat", {"$id": wanted})
        assert [read_facts(piece)["doc_id"] for piece in found] == ["mine"]
    (found,) = framework.find_where(over, "cat", {"$id": "theirs"})
    assert read_facts(found)["doc_id"] == framework.place(found)[0] == "theirs"
    assert framework.metadata(found).keys() == {"$id", "precise"}
