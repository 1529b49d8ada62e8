"""The same documents and questions through the core and both adapters: the same results."""

import json
import re

import numpy as np
import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import BaseDocumentCompressor
from langchain_core.documents import Document as LangChainDocument
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_text_splitters import RecursiveCharacterTextSplitter
from llama_index.core import VectorStoreIndex
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import Document as LlamaIndexDocument
from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle, TextNode

import langchain_precise
import llamaindex_precise
from llamaindex_precise.events import PreciseStageEvent
from precise_rag import (
    Candidate,
    Document,
    EvidenceExtractor,
    GradientSelector,
    PreciseRAG,
    RedundancyFilter,
    RelevanceFilter,
    Segmenter,
    read_facts,
)
from precise_rag.context import context_passages
from precise_rag.errors import InputError
from precise_rag.excerpts import excerpts_of
from precise_rag.facts import candidate_facts, piece_id
from precise_rag.index import HybridIndex, SentenceContextIndex, WordSentenceIndex
from precise_rag.index.rows import nearest
from precise_rag.pages import boxes_of, write_boxes
from precise_rag.reading.unanswered import LEAST_ANSWERED
from precise_rag.rerank import load_reranker, rerank
from precise_rag.rewriting import merge_searches
from precise_rag.segmentation import GreedySegmenter
from precise_rag.testing import HashEncoder, ScriptedLLM
from precise_rag.types import ExtractedAnswer, Reading
from support.llamaindex import HashEmbedding

TEXTS = {
    "ferry": (
        "The ferry to Velm leaves at nine. It carries mail, bread and eleven passengers.\n\n"
        "In storms the ferry stays in port. A red lantern on the pier says so. Nobody argues with it.\n\n"
        "The ferry to Velm leaves at nine. It carries mail, bread and eleven passengers."
    ),
    "mill": (
        "The mill grinds rye for three villages. Its wheel was carved by Runa Stell in 1902. "
        "Oak from the north slope was used.\r\n\r\nÉtienne repaired the wheel twice… 水車は今も回る。"
    ),
    "blank": " \n ",
}
QUESTIONS = ["Who carved the wheel of the mill?", "When does the ferry to Velm leave?", "red lantern"]
TOP_K = 8

CORE = [Document(name, text, {"title": name}) for name, text in TEXTS.items()]
LLAMAINDEX = [LlamaIndexDocument(doc_id=n, text=t, metadata={"title": n}) for n, t in TEXTS.items()]
LANGCHAIN = [LangChainDocument(t, id=n, metadata={"title": n}) for n, t in TEXTS.items()]

INDEXES = pytest.mark.parametrize(
    ("index_class", "retriever"),
    [
        (SentenceContextIndex, "SentenceContextRetriever"),
        (WordSentenceIndex, "WordSentenceRetriever"),
        (HybridIndex, "HybridRetriever"),
    ],
)


def test_segments_are_the_same():
    segmenter = Segmenter.from_pretrained(
        max_tokens=17, count_tokens=lambda texts: [len(text.split()) for text in texts]
    )
    core = [chunk for document in CORE for chunk in segmenter.segment(document)]
    parser = llamaindex_precise.SemanticSegmentationNodeParser(max_tokens=17, tokenizer=str.split)
    splitter = langchain_precise.SemanticSegmentationTextSplitter(
        chunk_size=17, length_function=lambda text: len(text.split()), add_start_index=True
    )
    assert_same_pieces(core, parser, splitter)


def test_greedy_chunks_are_the_same():
    segmenter = GreedySegmenter(HashEncoder(), max_chars=90)
    core = [chunk for document in CORE for chunk in segmenter.segment(document)]
    parser = llamaindex_precise.papers.GreedySemanticNodeParser(embed_model=HashEncoder(), max_chars=90)
    splitter = langchain_precise.papers.GreedySemanticTextSplitter(
        embeddings=HashEncoder(), chunk_size=90, add_start_index=True
    )
    assert_same_pieces(core, parser, splitter)


def assert_same_pieces(core, parser, splitter):
    expected = [(chunk.doc_id, chunk.start, chunk.end, chunk.text) for chunk in core]
    assert len(expected) > 4
    nodes = parser.get_nodes_from_documents(LLAMAINDEX)
    assert [(n.ref_doc_id, n.start_char_idx, n.end_char_idx, n.text) for n in nodes] == expected
    pieces = splitter.split_documents(LANGCHAIN)
    assert [
        (p.metadata["title"], read_facts(p)["start"], read_facts(p)["end"], p.page_content) for p in pieces
    ] == expected


@INDEXES
@pytest.mark.parametrize("backend", ["numpy", "faiss"])
@pytest.mark.parametrize("question", QUESTIONS)
def test_retrieval_is_the_same(index_class, retriever, backend, question, monkeypatch):
    monkeypatch.setattr(nearest, "EXACT_ROWS", 1)
    expected = index_class.build(CORE, HashEncoder()).search(question, TOP_K)
    nodes = llamaindex_retriever(retriever, backend=backend).retrieve(question)
    documents = langchain_retriever(retriever, backend=backend).invoke(question)

    places = [(piece_id(c.doc_id, c.start, c.end), c.text) for c in expected]
    assert [(item.node.node_id, item.node.text) for item in nodes] == places
    assert [(document.id, document.page_content) for document in documents] == places
    scores = [c.score for c in expected]
    assert [item.score for item in nodes] == pytest.approx(scores, abs=1e-6)
    assert [read_facts(d)["score"] for d in documents] == pytest.approx(scores, abs=1e-6)
    for candidate, item, document in zip(expected, nodes, documents, strict=True):
        facts = read_facts(item.node)
        for name, score in candidate.scores.items():
            assert facts["scores"][name] == pytest.approx(score, abs=1e-6)
            assert read_facts(document)["scores"][name] == pytest.approx(score, abs=1e-6)
        assert item.node.metadata["title"] == document.metadata["title"] == candidate.metadata["title"]


@INDEXES
@pytest.mark.parametrize("question", QUESTIONS)
def test_gradient_selection_is_the_same(index_class, retriever, question):
    found = index_class.build(CORE, HashEncoder()).search(question, TOP_K)
    selector = GradientSelector(min_k=1, ratio=0.6, max_tokens=40, share_of_best=0.25, min_keep=1)
    expected = selector.select(rerank(question, found, load_reranker("default")))

    options = {"min_k": 1, "ratio": 0.6, "max_tokens": 40}
    postprocessor = llamaindex_precise.papers.GradientSelectionPostprocessor(**options)
    compressor = langchain_precise.papers.GradientSelectionCompressor(**options)
    nodes = llamaindex_retriever(retriever).retrieve(question)
    documents = langchain_retriever(retriever).invoke(question)

    assert_same_decisions(postprocessor.select(nodes, question), expected)
    assert_same_decisions(compressor.select(documents, question), expected)
    assert_same_results(
        postprocessor.postprocess_nodes(nodes, query_str=question),
        compressor.compress_documents(documents, question),
        expected,
    )


@pytest.mark.parametrize("question", QUESTIONS)
def test_redundancy_is_the_same(question):
    index = SentenceContextIndex.build(CORE, HashEncoder())
    expected = RedundancyFilter().filter(index.search(question, TOP_K))
    assert any(not decision.kept for decision in expected.decisions)
    postprocessor = llamaindex_precise.papers.RedundancyPostprocessor()
    compressor = langchain_precise.papers.RedundancyCompressor()
    nodes = llamaindex_retriever("SentenceContextRetriever").retrieve(question)
    documents = langchain_retriever("SentenceContextRetriever").invoke(question)

    assert_same_decisions(postprocessor.select(nodes), expected)
    assert_same_decisions(compressor.select(documents, question), expected)
    assert_same_results(
        postprocessor.postprocess_nodes(nodes), compressor.compress_documents(documents, question), expected
    )


def test_relevance_is_the_same():
    question = QUESTIONS[0]
    expected = RelevanceFilter(ScriptedLLM(judge_wheels)).filter(
        question, HybridIndex.build(CORE, HashEncoder()).search(question, TOP_K)
    )
    assert {decision.kept for decision in expected.decisions} == {True, False}
    postprocessor = llamaindex_precise.papers.RelevanceFilterPostprocessor(llm=ScriptedLLM(judge_wheels))
    compressor = langchain_precise.papers.RelevanceFilterCompressor(llm=ScriptedLLM(judge_wheels))
    nodes = llamaindex_retriever("HybridRetriever").retrieve(question)
    documents = langchain_retriever("HybridRetriever").invoke(question)

    assert_same_decisions(postprocessor.select(nodes, question), expected)
    assert_same_decisions(compressor.select(documents, question), expected)
    assert_same_results(
        postprocessor.postprocess_nodes(nodes, query_str=question),
        compressor.compress_documents(documents, question),
        expected,
    )


def judge_wheels(messages):
    chunks = re.findall(r"^\w+ chunk (\S+)\n(.*?)\n\w+ end of chunk", messages[1].content, re.M | re.S)
    scores = [(key, 0.9 if "wheel" in text else 0.2) for key, text in chunks]
    return json.dumps({"scores": [{"id": k, "base": s, "reflection": s, "critic": s} for k, s in scores]})


def test_chains_of_stages_are_the_same():
    question = QUESTIONS[0]
    found = HybridIndex.build(CORE, HashEncoder()).search(question, TOP_K)
    unique = RedundancyFilter().filter(rerank(question, found, load_reranker("default")))
    expected = GradientSelector(min_k=2, share_of_best=0.25, min_keep=1).select(unique.kept)

    nodes = llamaindex_retriever("HybridRetriever").retrieve(question)
    for postprocessor in (
        llamaindex_precise.papers.PreciseRerankPostprocessor(),
        llamaindex_precise.papers.RedundancyPostprocessor(),
        llamaindex_precise.papers.GradientSelectionPostprocessor(min_k=2),
    ):
        nodes = postprocessor.postprocess_nodes(nodes, query_str=question)
    documents = langchain_retriever("HybridRetriever").invoke(question)
    for compressor in (
        langchain_precise.papers.RerankCompressor(),
        langchain_precise.papers.RedundancyCompressor(),
        langchain_precise.papers.GradientSelectionCompressor(min_k=2),
    ):
        documents = compressor.compress_documents(documents, question)
    assert_same_results(nodes, documents, expected)


@pytest.mark.parametrize(
    ("options", "n_kept"),
    [
        ({}, 2),
        ({"min_score": 0.9, "min_keep": 0}, 1),
        ({"min_score": 0.95, "min_keep": 2}, 2),
        ({"ratio": 0.0, "share_of_best": None}, 4),
        ({"ratio": 0.0, "share_of_best": 0.21}, 3),
    ],
)
def test_pieces_of_others_are_selected_alike(options, n_kept):
    scores = [0.91, 0.88, 0.2, 0.19]
    nodes = [NodeWithScore(node=TextNode(id_=f"{i}", text="x"), score=s) for i, s in enumerate(scores)]
    documents = [
        LangChainDocument("x", id=f"{i}", metadata={"relevance_score": s}) for i, s in enumerate(scores)
    ]
    options = {"score_scale": "probability", "min_k": 1, **options}
    ours = llamaindex_precise.papers.GradientSelectionPostprocessor(**options).select(nodes)
    theirs = langchain_precise.papers.GradientSelectionCompressor(**options).select(documents, "q")
    assert_same_decisions(ours, theirs)
    assert len(ours.kept) == n_kept


FIG_8 = [13.79, 13.58, 11.91, 11.55, 10.94, 7.815, 7.665, 5.490, 4.416, 1.304, 0.8, 0.255, -0.198]
FIG_9 = [5.080, 3.854, 3.016, 1.734, 1.560, 1.146, 0.842, 0.823, 0.685]


@pytest.mark.parametrize(
    ("logits", "options", "n_kept"), [(FIG_8, {}, 9), (FIG_9, {}, 9), (FIG_9, {"share_of_best": 0.25}, 5)]
)
def test_sage_s_figures_are_selected_without_a_hidden_share_of_the_best(logits, options, n_kept):
    nodes = [NodeWithScore(node=TextNode(id_=f"{i:02}", text="x"), score=s) for i, s in enumerate(logits)]
    documents = [
        LangChainDocument("x", id=f"{i:02}", metadata={"relevance_score": s}) for i, s in enumerate(logits)
    ]
    options = {"score_scale": "logit", "assume_ratio": True, "reranker": None, **options}
    ours = llamaindex_precise.papers.GradientSelectionPostprocessor(**options).select(nodes)
    theirs = langchain_precise.papers.GradientSelectionCompressor(**options).select(documents, "q")
    assert_same_decisions(ours, theirs)
    assert [c.score for c in ours.kept] == logits[:n_kept]


def test_self_feedback_is_the_same():
    question = QUESTIONS[0]
    replies = ["Nobody.", verdict(3, 1), "Runa Stell.", verdict(8, -1), "never asked"]
    core_llm, engine_llm, chain_llm = (ScriptedLLM(replies) for _ in range(3))
    options = {"selector": GradientSelector(min_k=2, ratio=1.0, min_score=0.02, min_keep=3)}
    index = HybridIndex.build(CORE, HashEncoder())
    rag = PreciseRAG(index, core_llm, **options)
    expected = rag.answer(question)
    assert (expected.text, len(expected.rounds)) == ("Runa Stell.", 2)

    engine = llamaindex_precise.SelfFeedbackQueryEngine(
        llamaindex_retriever("HybridRetriever"), engine_llm, **options
    )
    response = engine.query(QueryBundle(question))
    chain = langchain_precise.SelfFeedbackChain(langchain_retriever("HybridRetriever"), chain_llm, **options)
    output = chain.invoke(question)

    facts = response.metadata["precise"]
    assert str(response) == output["answer"] == expected.text
    assert facts["score"] == output["score"] == expected.judgement.score
    assert facts["note"] == output["note"] == expected.note
    assert_same_excerpts(response.source_nodes, output["context"], expected.passages)
    rounds = [turn.to_dict() for turn in expected.trace.rounds]
    assert facts["trace"]["rounds"] == output["trace"]["rounds"] == rounds
    for llm in (engine_llm, chain_llm):
        assert [without_marks(call.text) for call in llm.calls] == [
            without_marks(call.text) for call in core_llm.calls
        ]


def test_the_whole_path_is_the_same():
    rag = PreciseRAG(HybridIndex.build(CORE, HashEncoder()))
    nodes = llamaindex_precise.PreciseRetriever.from_documents(LLAMAINDEX, HashEncoder())
    documents = langchain_precise.PreciseRetriever.from_documents(LANGCHAIN, HashEncoder())
    for question in QUESTIONS:
        expected = rag.retrieve(question)
        passages = context_passages(expected)
        assert_same_excerpts(nodes.retrieve(question), documents.invoke(question), passages)
        assert_same_decisions(nodes.select(question), expected)
        assert_same_decisions(documents.select(question), expected)
        fixed = documents.invoke(question, k=4)
        nodes.similarity_top_k = 4
        assert [item.node.node_id for item in nodes.retrieve(question)] == [d.id for d in fixed]
        assert len(fixed) == 4
        nodes.similarity_top_k = None


@pytest.mark.parametrize(
    ("postprocessor", "compressor", "options"),
    [
        ("GradientSelectionPostprocessor", "GradientSelectionCompressor", {"min_k": 1}),
        ("GradientSelectionPostprocessor", "GradientSelectionCompressor", {"max_tokens": 30}),
        ("PreciseRerankPostprocessor", "RerankCompressor", {"top_n": 3}),
        ("RedundancyPostprocessor", "RedundancyCompressor", {}),
    ],
)
@pytest.mark.parametrize("question", QUESTIONS)
def test_stock_nodes_and_documents_are_treated_alike(postprocessor, compressor, options, question):
    """Pieces of a stock splitter, found by a stock store, with limits in tokens."""
    texts = {name: text for name, text in TEXTS.items() if text.strip()}
    splitter = RecursiveCharacterTextSplitter(chunk_size=90, chunk_overlap=0)
    pieces = [(f"{n}-{i}", t) for n, text in texts.items() for i, t in enumerate(splitter.split_text(text))]
    store = InMemoryVectorStore(langchain_precise.PreciseEmbeddings(HashEncoder()))
    store.add_documents([LangChainDocument(text, id=id_) for id_, text in pieces])
    scored = store.similarity_search_with_score(question, 9)
    found = [document for document, _ in scored]
    nodes = [NodeWithScore(node=TextNode(id_=d.id, text=d.page_content), score=score) for d, score in scored]

    kept = getattr(llamaindex_precise.papers, postprocessor)(**options).postprocess_nodes(
        nodes, query_str=question
    )
    sent = getattr(langchain_precise.papers, compressor)(**options).compress_documents(found, question)
    assert [item.node.node_id for item in kept] == [document.id for document in sent]
    assert [read_facts(item)["reason"] for item in kept] == [read_facts(d)["reason"] for d in sent]
    assert 0 < len(sent) < len(found)


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_filled_store_gives_the_same_sentences(question):
    texts = [text for text in TEXTS.values() if text.strip()]
    store = InMemoryVectorStore(langchain_precise.PreciseEmbeddings(HashEncoder()))
    store.add_documents([LangChainDocument(text, id=f"c{i}") for i, text in enumerate(texts)])
    nodes = [TextNode(text=text, id_=f"c{i}") for i, text in enumerate(texts)]
    index = VectorStoreIndex(nodes, embed_model=HashEmbedding())
    sent = langchain_precise.PreciseRetriever.from_store(store).invoke(question)
    kept = llamaindex_precise.PreciseRetriever.from_store(index).retrieve(question)
    assert [item.node.get_content() for item in kept] == [document.page_content for document in sent]
    assert [read_facts(item)["score"] for item in kept] == pytest.approx(
        [read_facts(document)["score"] for document in sent], abs=1e-6
    )


def verdict(score: int, adjustment: int) -> str:
    return json.dumps({"reason": "r", "score": score, "adjustment": adjustment})


def without_marks(prompt: str) -> str:
    """A prompt without the random mark that sets data apart, which its system message names."""
    mark = prompt.partition("begin with the mark ")[2].split(".")[0]
    return prompt.replace(mark, "MARK")


def llamaindex_retriever(name: str, k: int = TOP_K, **settings):
    made = getattr(llamaindex_precise.papers, name).from_documents
    return made(LLAMAINDEX, HashEncoder(), similarity_top_k=k, **settings)


def langchain_retriever(name: str, k: int = TOP_K, **settings):
    return getattr(langchain_precise.papers, name).from_documents(LANGCHAIN, HashEncoder(), k=k, **settings)


def assert_same_decisions(selection, expected):
    assert [(d.rank, d.candidate.id, d.kept, d.reason) for d in selection.decisions] == [
        (d.rank, d.candidate.id, d.kept, d.reason) for d in expected.decisions
    ]
    assert [d.candidate.score for d in selection.decisions] == pytest.approx(
        [d.candidate.score for d in expected.decisions], abs=1e-6
    )


def assert_same_results(nodes, documents, expected):
    kept = [(d.candidate, d.reason) for d in expected.decisions if d.kept]
    ids = [piece_id(c.doc_id, c.start, c.end) for c, _ in kept]
    assert [item.node.node_id for item in nodes] == [document.id for document in documents] == ids
    for (candidate, reason), item, document in zip(kept, nodes, documents, strict=True):
        assert item.score == pytest.approx(candidate.score, abs=1e-6)
        assert read_facts(document)["score"] == pytest.approx(candidate.score, abs=1e-6)
        assert read_facts(item.node)["reason"] == reason
        assert read_facts(document)["reason"] == reason


def assert_same_excerpts(nodes, documents, passages):
    excerpts = [passage.excerpt for passage in passages]
    ids = [piece_id(one.doc_id, one.start, one.end) for one in excerpts]
    assert [item.node.node_id for item in nodes] == [document.id for document in documents] == ids
    for excerpt, item, document in zip(excerpts, nodes, documents, strict=True):
        assert item.node.text == document.page_content == TEXTS[excerpt.doc_id][excerpt.start : excerpt.end]
        assert item.score == pytest.approx(excerpt.score, abs=1e-6)
        assert read_facts(document)["score"] == pytest.approx(excerpt.score, abs=1e-6)
        sentences = [(s["start"], s["end"], s["reason"]) for s in read_facts(item.node)["sentences"]]
        assert sentences == [(d.candidate.start, d.candidate.end, d.reason) for d in excerpt.sentences]
        assert read_facts(document)["sentences"] == read_facts(item.node)["sentences"]
        assert read_facts(item.node)["reason"] == read_facts(document)["reason"] == excerpt.reason


def test_headings_reach_the_reranker_in_both_frameworks():
    """The index knows them; a reranker that follows the framework's retriever reads them, too."""
    text = "# {}\n\nOil the shaft. Service it once a year.\n"
    pages = {name: text.format(f"{name} pump") for name in ("Austral K-2", "Borealis M-7")}
    query = "How often do I service the Borealis M-7 pump?"
    index = HybridIndex.build([Document(n, t) for n, t in pages.items()], HashEncoder())
    core = rerank(query, index.search(query, 8, returns="sentence"), load_reranker("packaged"))
    expected = [(c.text, pytest.approx(c.score, abs=1e-6)) for c in core]
    first = next(c for c in core if not c.text.startswith("#"))
    assert (first.doc_id, first.above) == ("Borealis M-7", ("Borealis M-7 pump",))
    documents = [LlamaIndexDocument(doc_id=n, text=t) for n, t in pages.items()]
    retriever = llamaindex_precise.papers.HybridRetriever.from_documents(
        documents, HashEncoder(), similarity_top_k=8, search_kwargs={"returns": "sentence"}
    )
    reranker = llamaindex_precise.papers.PreciseRerankPostprocessor(reranker="packaged", top_n=8)
    found = reranker.postprocess_nodes(retriever.retrieve(query), query_str=query)
    assert [(item.node.get_content(), item.score) for item in found] == expected
    pieces = langchain_precise.papers.HybridRetriever.from_documents(
        [LangChainDocument(t, id=n) for n, t in pages.items()],
        HashEncoder(),
        k=8,
        search_kwargs={"returns": "sentence"},
    ).invoke(query)
    ranked = langchain_precise.papers.RerankCompressor(reranker="packaged", top_n=8).compress_documents(
        pieces, query
    )
    assert [(d.page_content, read_facts(d)["score"]) for d in ranked] == expected


def test_a_script_that_is_not_read_is_told_in_both_frameworks(monkeypatch):
    """The mark is in the metadata, and the note in the record of the stage."""
    query = "Кто починил колесо?"
    told = "ranked by words and order: the reranker does not read Cyrillic"
    notes: dict[str, list[str]] = {"llamaindex": [], "langchain": []}

    class Heard(BaseEventHandler):
        def handle(self, event, **_):
            if isinstance(event, PreciseStageEvent) and event.record["stage"] == "rerank":
                notes["llamaindex"].append(event.record["note"])

    class Callback(BaseCallbackHandler):
        def on_custom_event(self, name, data, **_):
            if data.get("stage") == "rerank":
                notes["langchain"].append(data["note"])

    monkeypatch.setattr(get_dispatcher(), "event_handlers", [Heard()])
    retriever = llamaindex_precise.PreciseRetriever.from_documents(LLAMAINDEX, HashEncoder())
    nodes = retriever.retrieve(query)
    chain = langchain_precise.PreciseRetriever.from_documents(LANGCHAIN, HashEncoder())
    documents = chain.invoke(query, {"callbacks": [Callback()]})
    selecting = llamaindex_precise.papers.GradientSelectionPostprocessor()
    nodes += selecting.postprocess_nodes([NodeWithScore(node=TextNode(text="A mill."))], query_str=query)
    compressing = langchain_precise.papers.GradientSelectionCompressor()
    stock = [LangChainDocument("A mill.")]
    documents += compressing.compress_documents(stock, query, callbacks=[Callback()])
    assert notes == {"llamaindex": [told] * 2, "langchain": [told] * 2}
    marks = [read_facts(document)["scores"]["unread"] for document in documents]
    assert marks == [read_facts(item.node)["scores"]["unread"] for item in nodes] == [1.0] * len(nodes)


def test_evidence_is_the_same():
    query = QUESTIONS[0]
    extractor = EvidenceExtractor(load_reranker("packaged"))
    given = [
        Candidate(d.id, 0, len(d.text), d.text, -float(i), "rank", metadata=d.metadata)
        for i, d in enumerate(CORE)
    ]
    core = extractor.extract(query, given).excerpts
    assert core
    nodes = [
        NodeWithScore(node=TextNode(id_=name, text=text, metadata={"title": name}))
        for name, text in TEXTS.items()
    ]
    postprocessor = llamaindex_precise.EvidencePostprocessor(reranker="packaged")
    found = postprocessor.postprocess_nodes(nodes, query_str=query)
    expected = [(c.doc_id, c.start, c.end, c.text, pytest.approx(c.score)) for c in core]
    assert [_placed(item.node, item.node.get_content()) for item in found] == expected
    compressor = langchain_precise.EvidenceCompressor(reranker="packaged")
    documents = compressor.compress_documents(LANGCHAIN, query)
    assert [_placed(d, d.page_content) for d in documents] == expected


class NameReader:
    """A reader that finds the name of the carver, and is sure only if it is there."""

    def read(self, query, texts):
        found = [(text, text.text.find("Runa")) for text in texts]
        answers = tuple(
            ExtractedAnswer(text.doc_id, text.start + at, text.start + at + 10, "Runa Stell", 0.75)
            for text, at in found
            if at >= 0
        )
        return Reading(answers, 0.9 if answers else 0.1)


@pytest.mark.parametrize(("question", "has_answer"), [(QUESTIONS[0], True), ("Who was Napoleon?", False)])
def test_answers_and_what_is_not_answered_are_the_same(question, has_answer):
    index = HybridIndex.build(CORE[:2] if has_answer else CORE[:1], HashEncoder())
    options = {"reranker": load_reranker("packaged"), "reader": NameReader()}
    for unanswered in ("send", "empty"):
        rag = PreciseRAG(index, unanswered=unanswered, **options)
        selection = rag.retrieve(question)
        expected = [_read_of(candidate_facts(one)) for one in excerpts_of(selection)]
        nodes = llamaindex_precise.PreciseRetriever(rag).retrieve(question)
        documents = langchain_precise.PreciseRetriever(rag=rag).invoke(question)
        assert [_read_of(read_facts(item.node)) for item in nodes] == expected
        assert [_read_of(read_facts(document)) for document in documents] == expected
        assert bool(expected) == (has_answer or unanswered == "send")
        assert selection.answered == (0.9 if has_answer else 0.1)
        texts = {document.id: document.text for document in CORE}
        marked = [(facts["doc_id"], facts.get("answer")) for facts in map(read_facts, documents)]
        slices = [texts[doc_id][place["start"] : place["end"]] for doc_id, place in marked if place]
        assert slices == ["Runa Stell"] * has_answer


def test_both_cut_to_nothing_where_nothing_answers():
    settings = {"reranker": "packaged", "unanswered": "empty"}
    postprocessor = llamaindex_precise.EvidencePostprocessor(**settings)
    compressor = langchain_precise.EvidenceCompressor(**settings)
    node = NodeWithScore(node=TextNode(id_="ferry", text=TEXTS["ferry"]))
    found = {}
    for query in ("When does the ferry to Velm leave?", "Which enzyme repairs the liver of a shark?"):
        answered = EvidenceExtractor(load_reranker("packaged")).extract(query, [_whole("ferry")]).answered
        nodes = postprocessor.postprocess_nodes([node], query_str=query)
        documents = compressor.compress_documents([LANGCHAIN[0]], query)
        assert answered is not None
        assert len(nodes) == len(documents)
        assert bool(nodes) == (answered >= LEAST_ANSWERED)
        found[query] = answered
    assert max(found.values()) == found["When does the ferry to Velm leave?"]
    with pytest.raises(InputError, match='unanswered must be "send" or "empty"'):
        llamaindex_precise.EvidencePostprocessor(unanswered="none")
    with pytest.raises(InputError, match='unanswered must be "send" or "empty"'):
        langchain_precise.EvidenceCompressor(unanswered="none")


def _whole(name):
    return Candidate(name, 0, len(TEXTS[name]), TEXTS[name], 0.0, "rank")


def _read_of(facts):
    return facts["doc_id"], facts["start"], facts.get("answer"), facts.get("answered")


class ByLengthNodes(BaseNodePostprocessor):
    """A LlamaIndex reranker with the scores of some service, which returns its best three."""

    def _postprocess_nodes(self, nodes, query_bundle=None):
        scored = [NodeWithScore(node=n.node, score=8.0 + len(n.node.get_content()) / 99) for n in nodes]
        return sorted(scored, key=lambda item: -item.score)[:3]


class ByLengthDocuments(BaseDocumentCompressor):
    """The same reranker for LangChain."""

    def compress_documents(self, documents, query, callbacks=None):
        return sorted(documents, key=lambda document: -len(document.page_content))[:3]


@pytest.mark.parametrize("reranker", [ByLengthNodes(), ByLengthDocuments()], ids=["llamaindex", "langchain"])
def test_a_reranker_of_either_framework_works_in_every_part_of_both(reranker):
    query = QUESTIONS[0]
    rag = PreciseRAG(HybridIndex.build(CORE, HashEncoder()), reranker=reranker)
    expected = rag.retrieve(query)
    assert expected.kept
    nodes = llamaindex_precise.PreciseRetriever.from_documents(LLAMAINDEX, HashEncoder(), reranker=reranker)
    documents = langchain_precise.PreciseRetriever.from_documents(LANGCHAIN, HashEncoder(), reranker=reranker)
    assert_same_excerpts(nodes.retrieve(query), documents.invoke(query), context_passages(expected))

    given, found = nodes.retrieve(query), documents.invoke(query)
    for ours, theirs in (
        (llamaindex_precise.EvidencePostprocessor, langchain_precise.EvidenceCompressor),
        (
            llamaindex_precise.papers.GradientSelectionPostprocessor,
            langchain_precise.papers.GradientSelectionCompressor,
        ),
    ):
        kept = ours(reranker=reranker).postprocess_nodes(given, query_str=query)
        sent = theirs(reranker=reranker).compress_documents(found, query)
        assert [item.node.get_content() for item in kept] == [d.page_content for d in sent]
        assert sent

    llm = ScriptedLLM(["Runa Stell.", verdict(9, 0)] * 2)
    engine = llamaindex_precise.SelfFeedbackQueryEngine(
        llamaindex_retriever("HybridRetriever"), llm, reranker=reranker
    )
    chain = langchain_precise.SelfFeedbackChain(
        langchain_retriever("HybridRetriever"), llm, reranker=reranker
    )
    assert str(engine.query(query)) == chain.invoke(query)["answer"] == "Runa Stell."


def test_sentences_in_context_are_the_same():
    parser = llamaindex_precise.papers.SentenceContextNodeParser(embed_model=HashEncoder(), alpha=0.7)
    nodes = [n for n in parser.get_nodes_from_documents(LLAMAINDEX) if isinstance(n, TextNode)]
    splitter = langchain_precise.papers.SentenceContextTextSplitter(HashEncoder(), alpha=0.7)
    pieces = splitter.split_documents(LANGCHAIN)
    assert len(pieces) > 8
    assert [p.page_content for p in pieces] == [n.get_content() for n in nodes]
    assert [p.metadata["window"] for p in pieces] == [n.metadata["window"] for n in nodes]
    assert [read_facts(p)["start"] for p in pieces] == [n.start_char_idx for n in nodes]
    once = [
        row
        for row, piece in enumerate(pieces)
        if [p.page_content for p in pieces].count(piece.page_content) == 1
    ]
    vectors = splitter.embeddings.embed_documents([p.page_content for p in pieces])
    assert np.array([vectors[row] for row in once]) == pytest.approx(
        np.array([nodes[row].embedding for row in once]), abs=1e-6
    )
    with pytest.raises(InputError, match="set window_metadata_key="):
        splitter.split_documents([LangChainDocument("One. Two.", metadata={"window": "mine"})])


def test_rewriting_is_the_same():
    """Both find what the rewritten question finds, too, and merge it alike."""
    question, written = QUESTIONS[0], "ferry leaves Velm nine"
    index = HybridIndex.build(CORE, HashEncoder())
    searches = [index.search(one, 3) for one in (question, written)]
    expected = [(c.text, pytest.approx(c.score)) for c in merge_searches(searches)]
    assert len(expected) > 3
    nodes = llamaindex_precise.papers.RewritingRetriever(
        llamaindex_retriever("HybridRetriever", k=3), ScriptedLLM([written])
    )
    found = nodes.retrieve(question)
    assert [(item.node.get_content(), item.score) for item in found] == expected
    documents = langchain_precise.papers.RewritingRetriever(
        retriever=langchain_retriever("HybridRetriever", k=3), llm=ScriptedLLM([written])
    )
    pieces = documents.invoke(question)
    assert [(d.page_content, read_facts(d)["score"]) for d in pieces] == expected
    failing = langchain_precise.papers.RewritingRetriever(
        retriever=langchain_retriever("HybridRetriever", k=3), llm=ScriptedLLM(["one\ntwo"])
    )
    assert [d.page_content for d in failing.invoke(question)] == [c.text for c in searches[0]]


async def test_rewriting_waits_for_nothing_else_in_both():
    question, written = QUESTIONS[0], "ferry leaves Velm nine"
    nodes = llamaindex_precise.papers.RewritingRetriever(
        llamaindex_retriever("HybridRetriever", k=3), ScriptedLLM([written] * 2)
    )
    documents = langchain_precise.papers.RewritingRetriever(
        retriever=langchain_retriever("HybridRetriever", k=3), llm=ScriptedLLM([written] * 2)
    )
    found = [item.node.get_content() for item in await nodes.aretrieve(question)]
    assert found == [item.node.get_content() for item in nodes.retrieve(question)]
    assert found == [d.page_content for d in await documents.ainvoke(question)]


def test_headings_inside_a_text_stand_above_its_evidence_in_both():
    text = (
        "# Yard\n\n## Pump M-7\n\nChange the oil every month. Ask Ada for the key.\n\n"
        "## Saw\n\nSharpen the blade every year. Ask Ben for the file."
    )
    node = NodeWithScore(node=TextNode(id_="yard", text=text))
    document = LangChainDocument(text, id="yard")
    settings = {"reranker": "packaged", "share_of_best": 1.0, "min_keep": 1}
    query = "How often is the oil of the pump M-7 changed?"
    found = llamaindex_precise.EvidencePostprocessor(**settings).postprocess_nodes([node], query_str=query)
    theirs = langchain_precise.EvidenceCompressor(**settings).compress_documents([document], query)
    expected = [_placed(item.node, item.node.get_content()) for item in found]
    assert [_placed(d, d.page_content) for d in theirs] == [(*o[:4], pytest.approx(o[4])) for o in expected]
    for pieces in ([item.node for item in found], theirs):
        best = max(map(read_facts, pieces), key=lambda facts: facts["score"])
        assert best["above"] == ["Yard", "Pump M-7"]
        (shown,) = (piece.metadata["section"] for piece in pieces if read_facts(piece) == best)
        assert shown == "Yard > Pump M-7"


def _placed(piece, text):
    facts = read_facts(piece)
    return facts["doc_id"], facts["start"], facts["end"], text, facts["score"]


def test_both_frameworks_have_the_page_and_the_boxes_of_a_pdf() -> None:
    text = TEXTS["mill"]
    written = {"pages": [0, 40], "boxes": write_boxes([(0, (72, 90, 510, 104)), (40, (72, 72, 300, 86))])}
    index = HybridIndex.build(
        [Document("mill.pdf", text, {"headings": [[0, 1, "Mill"]], **written})], HashEncoder()
    )
    nodes = llamaindex_precise.PreciseRetriever.from_index(index).retrieve(QUESTIONS[0])
    found = langchain_precise.PreciseRetriever.from_index(index).invoke(QUESTIONS[0])
    assert nodes
    for node, document in zip(nodes, found, strict=True):
        facts = read_facts(node)
        assert facts == read_facts(document)
        assert facts["page"] == (1 if facts["start"] < 40 else 2)
        assert facts["boxes"] == [list(box) for box in boxes_of(written, facts["start"], facts["end"])]
        assert "boxes" not in node.metadata | document.metadata
        assert "headings" not in node.node.get_content(MetadataMode.LLM)
