"""Retrievers return what the core finds, as copies, with its places: over any index, and without blocking."""

import asyncio
import copy
from itertools import chain
from typing import Any

import pytest

from precise_rag import Document, PreciseRAG, read_facts
from precise_rag.errors import InputError
from precise_rag.excerpts import excerpts_of
from precise_rag.facts import piece_id
from precise_rag.index import DatabaseIndex, HybridIndex, load_index
from precise_rag.testing import HashEncoder, ScriptedLLM
from support.alike import assert_alike
from support.documents import read_cases
from support.frameworks import LANGCHAIN, LLAMAINDEX, each_framework
from support.velm import (
    CORE,
    PLAIN,
    QUESTIONS,
    TEXTS,
    assert_same_decisions,
    assert_same_excerpts,
    documents,
    retriever,
    wheels_are_relevant,
)

FORGED = read_cases("documents.json", "forged metadata")


@each_framework
@pytest.mark.parametrize("preset", ["precise", "sage", "paretorag", "chunkrag", "recursive"])
async def test_every_preset_retrieves_as_the_core_does(framework, preset):
    options: dict[str, Any] = {"preset": preset, "llm": ScriptedLLM(wheels_are_relevant)}
    core = PreciseRAG.from_documents(CORE, encoder=HashEncoder(), **options)
    over = framework.retriever.from_documents(documents(framework), HashEncoder(), **options)
    for question in QUESTIONS[:2]:
        expected, found = core.retrieve(question), framework.find(over, question)
        assert expected.kept
        assert_same_excerpts(framework, found, excerpts_of(expected, core.order))
        assert_same_decisions(over.select(question), expected)
        assert_alike(await framework.afind(over, question), found)


@each_framework
def test_a_fixed_number_of_sentences_is_found_and_nothing_is_shared(framework):
    given = [framework.document(text, name, tags=[name]) for name, text in TEXTS.items()]
    before = copy.deepcopy(given)
    over = framework.retriever.from_documents(given, HashEncoder(), **{framework.k: 4})
    found = framework.find(over, QUESTIONS[0])
    kept = over.rag.with_k(4).retrieve(QUESTIONS[0]).kept
    assert [framework.id(piece) for piece in found] == [piece_id(c.doc_id, c.start, c.end) for c in kept]
    assert len(found) == 4
    for piece in found:
        framework.metadata(piece)["tags"].append("changed")
    assert given == before
    assert all(len(framework.metadata(piece)["tags"]) == 1 for piece in framework.find(over, QUESTIONS[0]))


@each_framework
async def test_asynchronous_searches_give_the_same_off_the_event_loop(framework):
    class OffTheLoop(HybridIndex):
        def search(self, *args, **kwargs):
            with pytest.raises(RuntimeError):
                asyncio.get_running_loop()
            return super().search(*args, **kwargs)

    class OnlySearch:
        """An index without an asynchronous search."""

        def __init__(self, whole):
            self.search, self.encoder = whole.search, whole.encoder

    expected = framework.find(retriever(framework), QUESTIONS[0])
    whole = OffTheLoop.build(CORE, HashEncoder())
    for watched in (whole, OnlySearch(whole)):
        over = framework.retriever.from_index(watched, **PLAIN)
        found = await asyncio.gather(*(framework.afind(over, QUESTIONS[0]) for _ in range(4)))
        for pieces in found:
            assert_alike(pieces, expected)


@each_framework
def test_a_saved_index_gives_the_same_pieces(framework, tmp_path):
    over = framework.retriever.from_documents(documents(framework), encoder=HashEncoder(), **PLAIN)
    over.rag.save(tmp_path / "index")
    loaded = framework.retriever.from_index(load_index(tmp_path / "index", HashEncoder()), **PLAIN)
    assert_alike(framework.find(loaded, QUESTIONS[0]), framework.find(over, QUESTIONS[0]))


@each_framework
async def test_an_empty_collection_gives_no_results(framework):
    for given in ([], [framework.document(" ", "blank")]):
        over = framework.retriever.from_documents(given, HashEncoder())
        assert framework.find(over, QUESTIONS[0]) == await framework.afind(over, QUESTIONS[0]) == []


@each_framework
def test_a_store_in_place_of_a_pipeline_or_an_index_of_ours_is_told_where_it_belongs(framework):
    store = framework.stock(documents(framework))
    for make in (framework.retriever, framework.retriever.from_index):
        with pytest.raises(InputError, match=r"PreciseRetriever\.from_store"):
            make(store)


@each_framework
@pytest.mark.parametrize("query", ["", " ", None, 5, b"x", ["a"]])
def test_a_query_must_be_text(framework, query):
    with pytest.raises(InputError, match="the query must"):
        retriever(framework).select(query)


@pytest.fixture(params=["in memory", "database"])
def index(request):
    """An empty index."""
    if request.param == "in memory":
        return HybridIndex(HashEncoder())
    return DatabaseIndex(request.getfixturevalue("new_location")(), HashEncoder())


@each_framework
def test_documents_are_changed_and_filters_are_set_once_or_for_one_call(framework, index):
    over = framework.retriever.from_index(index, **PLAIN)

    def owners(wanted=None, over=over):
        return {framework.metadata(p)["who"] for p in framework.find_where(over, "cat", wanted)}

    assert owners() == set()
    years = {"me": 2019, "you": 2021, "them": 2024}
    given = [framework.document("A cat.", who, who=who, year=year) for who, year in years.items()]
    over.add_documents(given)
    assert owners({"who": "me"}) == {"me"}
    assert owners({"who": "nobody"}) == set()
    excluded = ["me", "you"]
    neither = framework.filtered({"who": {"$nin": excluded}})
    made = framework.retriever.from_documents(given, HashEncoder(), **neither)
    made = made, framework.retriever.from_index(index, **neither)
    excluded.append("them")  # changes no retriever
    for whole in made:
        assert {framework.metadata(piece)["who"] for piece in framework.find(whole, "cat")} == {"them"}
        answered = framework.answer(framework.loop.from_rag(whole.rag), "cat").sources
        assert {framework.metadata(piece)["who"] for piece in answered} == {"them"}
        for loop_filter, expected in (({}, {"them"}), ({"year": {"$lt": 2024}}, set())):
            kept = whole.rag.retrieve("cat", filter=loop_filter).kept
            assert {candidate.doc_id for candidate in kept} == expected
        wanted = {"year": {"$lt": 2020}}
        assert owners(wanted, over=whole) == ({"me"} if framework is LLAMAINDEX else set())
        assert framework is LLAMAINDEX or owners({}, over=whole) == {"them"}
    with pytest.raises(InputError, match="unknown operator"):
        owners({"year": {"$near": 3}})
    over.delete(["me"])
    assert owners() == {"you", "them"}


@each_framework
def test_metadata_forge_neither_an_id_nor_a_source(framework, index):
    given = [framework.document("The cat sleeps.", n, **m) for n, m in (("mine", {}), ("theirs", FORGED))]
    over = framework.retriever.from_index(index, **PLAIN)
    over.add_documents(given)
    for wanted in ({"$eq": "mine"}, {"$lte": "mine"}, {"$contains": "min"}):
        found = framework.find_where(over, "cat", {"$id": wanted})
        assert [read_facts(piece)["doc_id"] for piece in found] == ["mine"]
    (found,) = framework.find_where(over, "cat", {"$id": "theirs"})
    assert read_facts(found)["doc_id"] == framework.place(found)[0] == "theirs"
    assert framework.metadata(found).keys() - {"section"} == {"$id", "precise"}


@each_framework
@pytest.mark.parametrize(("key", "pages"), [("page", [0, 40]), ("time", [[0, "00:01"], [40, "00:02"]])])
def test_pieces_have_the_page_that_they_are_on_or_the_time_at_which_they_are_said(framework, key, pages):
    index = HybridIndex.build([Document("mill", TEXTS["mill"], {"precise_pages": pages})], HashEncoder())
    given = framework.document(TEXTS["mill"], "mill", precise_pages=pages)
    both = framework.retriever.from_index(index), framework.retriever.from_documents([given], HashEncoder())
    found = [framework.find(over, QUESTIONS[0]) for over in both]
    assert all(found)
    for piece in chain.from_iterable(found):
        facts = read_facts(piece)
        number = 1 if facts["start"] < 40 else 2
        assert facts[key] == (number if key == "page" else f"00:0{number}")
        assert framework is LANGCHAIN or "precise_pages" not in piece.node.get_content("llm")
