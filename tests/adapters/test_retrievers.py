"""Retrievers return what the core finds, as copies, also without blocking."""

import asyncio
import copy
from typing import Any

import pytest

from precise_rag import Document, PreciseRAG, read_facts
from precise_rag.context import context_passages
from precise_rag.errors import InputError
from precise_rag.facts import piece_id
from precise_rag.index import HybridIndex
from precise_rag.rerank import load_reranker, rerank
from precise_rag.testing import HashEncoder
from support.alike import assert_alike
from support.frameworks import FRAMEWORKS, LANGCHAIN, LLAMAINDEX, each_framework
from support.velm import (
    CORE,
    INDEXES,
    QUESTIONS,
    TEXTS,
    TOP_K,
    assert_same_decisions,
    assert_same_excerpts,
    documents,
    each_index,
    each_question,
    retriever,
)


@each_framework
@each_index
@each_question
def test_what_is_found_is_what_the_core_finds(framework, index, question):
    expected = INDEXES[index].build(CORE, HashEncoder()).search(question, TOP_K)
    found = framework.find(retriever(framework, index), question)
    places = [(piece_id(c.doc_id, c.start, c.end), c.text) for c in expected]
    assert [(framework.id(piece), framework.text(piece)) for piece in found] == places
    for candidate, piece in zip(expected, found, strict=True):
        facts = read_facts(piece)
        assert framework.score(piece) == pytest.approx(candidate.score, abs=1e-6)
        assert type(framework.score(piece)) is float
        assert facts["scores"] == pytest.approx(dict(candidate.scores), abs=1e-6)
        assert facts["score_scale"] == candidate.score_scale
        assert TEXTS[facts["doc_id"]][facts["start"] : facts["end"]] == candidate.text
        assert framework.metadata(piece)["title"] == candidate.metadata["title"]


@each_framework
async def test_the_whole_path_is_that_of_the_core(framework):
    rag = PreciseRAG(HybridIndex.build(CORE, HashEncoder()))
    whole = framework.retriever("Precise").from_documents(documents(framework), HashEncoder())
    for question in QUESTIONS:
        expected, found = rag.retrieve(question), framework.find(whole, question)
        assert_same_excerpts(framework, found, [passage.excerpt for passage in context_passages(expected)])
        assert_same_decisions(whole.select(question), expected)
        assert_alike(await framework.afind(whole, question), found)


@each_question
def test_a_fixed_number_of_sentences_is_the_same(question):
    found = []
    for framework in FRAMEWORKS.values():
        fixed = retriever(framework, "Precise", 4)
        found.append([framework.id(piece) for piece in framework.find(fixed, question)])
    assert found[0] == found[1]
    assert len(found[0]) == 4


@each_framework
@pytest.mark.parametrize("kind", [*INDEXES, "Precise"])
def test_what_is_found_shares_nothing_with_the_documents_or_the_index(framework, kind):
    given = [framework.document(text, name, tags=[name]) for name, text in TEXTS.items()]
    before = copy.deepcopy(given)
    over = framework.retriever(kind).from_documents(given, HashEncoder())
    for piece in framework.find(over, QUESTIONS[0]):
        framework.metadata(piece)["tags"].append("changed")
    assert given == before
    assert all(len(framework.metadata(piece)["tags"]) == 1 for piece in framework.find(over, QUESTIONS[0]))


@each_framework
@each_index
async def test_asynchronous_searches_give_the_same_off_the_event_loop(framework, index):
    kind: Any = INDEXES[index]

    class OffTheLoop(kind):
        def search(self, *args, **kwargs):
            with pytest.raises(RuntimeError):
                asyncio.get_running_loop()
            return super().search(*args, **kwargs)

    class OnlySearch:
        """An index without an asynchronous search."""

        def __init__(self, whole):
            self.search, self.encoder = whole.search, whole.encoder

    expected = retriever(framework, index, 3).search(QUESTIONS[0])
    assert len(expected) == 3
    places = [(piece_id(c.doc_id, c.start, c.end), pytest.approx(c.score, abs=1e-6)) for c in expected]
    whole = OffTheLoop.build(CORE, HashEncoder())
    for watched in (whole, OnlySearch(whole)):
        over = framework.retriever(index).from_index(watched, **{framework.k: 3})
        found = await asyncio.gather(*(framework.afind(over, QUESTIONS[0]) for _ in range(8)))
        assert [[(framework.id(p), framework.score(p)) for p in pieces] for pieces in found] == [places] * 8


@each_framework
def test_options_of_the_index_and_of_its_search_reach_it(framework):
    options = {"search_kwargs": {"returns": "passage"}, "alpha": 0.8}
    over = retriever(framework, "SentenceContext", 1, **options)
    assert over.index.settings.alpha == 0.8
    [best] = framework.find(over, QUESTIONS[0])
    assert framework.text(best).strip() in TEXTS["mill"].split("\r\n\r\n")


@each_framework
def test_documents_are_added_replaced_and_deleted(framework):
    ferry, mill, _ = documents(framework)
    over = framework.retriever("SentenceContext").from_documents([ferry], HashEncoder())
    over.add_documents([mill])
    assert read_facts(framework.find(over, QUESTIONS[0])[0])["doc_id"] == "mill"
    over.add_documents([framework.document("The wheel of the mill is broken.", "mill")])
    assert framework.text(framework.find(over, QUESTIONS[0])[0]) == "The wheel of the mill is broken."
    over.delete(["mill"])
    assert {read_facts(piece)["doc_id"] for piece in framework.find(over, QUESTIONS[0])} == {"ferry"}


@each_framework
@pytest.mark.parametrize("kind", [*INDEXES, "Precise"])
async def test_an_empty_collection_gives_no_results(framework, kind):
    for given in ([], [framework.document(" ", "blank")]):
        over = framework.retriever(kind).from_documents(given, HashEncoder())
        assert framework.find(over, QUESTIONS[0]) == await framework.afind(over, QUESTIONS[0]) == []


@pytest.mark.parametrize("query", ["", " ", None, 5, b"x", ["a"]])
@pytest.mark.parametrize("kind", ["Hybrid", "Precise"])
def test_a_query_must_be_text(kind, query):
    nodes, found = (retriever(framework, kind) for framework in (LLAMAINDEX, LANGCHAIN))
    for ask in (nodes.search if kind == "Hybrid" else nodes.select, found.invoke):
        with pytest.raises(InputError, match="the query must"):
            ask(query)


@each_framework
def test_headings_reach_the_reranker(framework):
    """The index knows them; a reranker that follows the framework's retriever reads them, too."""
    text = "# {}\n\nOil the shaft. Service it once a year.\n"
    pages = {name: text.format(f"{name} pump") for name in ("Austral K-2", "Borealis M-7")}
    query = "How often do I service the Borealis M-7 pump?"
    index = HybridIndex.build([Document(n, t) for n, t in pages.items()], HashEncoder())
    core = rerank(query, index.search(query, 8, returns="sentence"), load_reranker("packaged"))
    first = next(c for c in core if not c.text.startswith("#"))
    assert (first.doc_id, first.above) == ("Borealis M-7", ("Borealis M-7 pump",))
    options = {framework.k: 8, "search_kwargs": {"returns": "sentence"}}
    given = [framework.document(t, n) for n, t in pages.items()]
    over = framework.retriever("Hybrid").from_documents(given, HashEncoder(), **options)
    part = framework.part("Rerank", reranker="packaged", top_n=8)
    found = framework.cut(part, framework.find(over, query), query)
    expected = [(c.text, pytest.approx(c.score, abs=1e-6)) for c in core]
    assert [(framework.text(piece), framework.score(piece)) for piece in found] == expected


@each_framework
def test_pieces_have_the_page_of_a_pdf(framework):
    pdf = Document("mill.pdf", TEXTS["mill"], {"pages": [0, 40]})
    over = framework.retriever("Precise").from_index(HybridIndex.build([pdf], HashEncoder()))
    found = framework.find(over, QUESTIONS[0])
    assert found
    for piece in found:
        facts = read_facts(piece)
        assert facts["page"] == (1 if facts["start"] < 40 else 2)
        assert framework is LANGCHAIN or "pages" not in piece.node.get_content("llm")
