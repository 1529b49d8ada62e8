"""Postprocessors and compressors decide as the core does, over our retrievers and over stock ones."""

import copy
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from langchain_core.documents import BaseDocumentCompressor
from langchain_text_splitters import RecursiveCharacterTextSplitter
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore

from precise_rag import GradientSelector, PreciseRAG, RedundancyFilter, RelevanceFilter, read_facts
from precise_rag.context import context_passages
from precise_rag.errors import ScoreScaleError
from precise_rag.index import HybridIndex
from precise_rag.rerank import load_reranker, rerank
from precise_rag.testing import HashEncoder, ScriptedLLM
from support.alike import assert_alike
from support.frameworks import FRAMEWORKS, each_framework
from support.velm import (
    CORE,
    INDEXES,
    QUESTIONS,
    TEXTS,
    TOP_K,
    assert_same_decisions,
    assert_same_excerpts,
    assert_same_results,
    documents,
    each_question,
    retriever,
    wheels_are_relevant,
)


def gradient(query, found):
    selector = GradientSelector(min_k=1, ratio=0.6, max_tokens=40, share_of_best=0.25, min_keep=1)
    return selector.select(rerank(query, found, load_reranker("default")))


def relevance(query, found):
    return RelevanceFilter(ScriptedLLM(wheels_are_relevant)).filter(query, found)


SETTINGS = {
    "GradientSelection": {"min_k": 1, "ratio": 0.6, "max_tokens": 40},
    "Redundancy": {},
    "RelevanceFilter": {"llm": ScriptedLLM(wheels_are_relevant)},
}
DECISIONS = [
    *[("GradientSelection", gradient, index, question) for index in INDEXES for question in QUESTIONS],
    *[("Redundancy", lambda q, c: RedundancyFilter().filter(c), "SentenceContext", q) for q in QUESTIONS],
    ("RelevanceFilter", relevance, "Hybrid", QUESTIONS[0]),
]


@each_framework
@pytest.mark.parametrize(("name", "core", "index", "question"), DECISIONS)
async def test_decisions_scores_and_reasons_are_those_of_the_core(framework, name, core, index, question):
    expected = core(question, INDEXES[index].build(CORE, HashEncoder()).search(question, TOP_K))
    assert core is gradient or {decision.kept for decision in expected.decisions} == {True, False}
    part = framework.part(name, **SETTINGS[name])
    found = framework.find(retriever(framework, index), question)
    before = copy.deepcopy(found)
    kept = framework.cut(part, found, question)
    assert_same_decisions(part.select(found, question), expected)
    assert_same_results(framework, kept, expected)
    assert_alike(await framework.acut(part, found, question), kept)
    for piece in kept:
        framework.metadata(piece)["title"] = "changed"
    assert found == before


@each_framework
def test_chains_of_stages_decide_as_the_core(framework):
    question = QUESTIONS[0]
    found = HybridIndex.build(CORE, HashEncoder()).search(question, TOP_K)
    unique = RedundancyFilter().filter(rerank(question, found, load_reranker("default")))
    expected = GradientSelector(min_k=2, share_of_best=0.25, min_keep=1).select(unique.kept)
    pieces = framework.find(retriever(framework), question)
    for name, settings in (("Rerank", {}), ("Redundancy", {}), ("GradientSelection", {"min_k": 2})):
        pieces = framework.cut(framework.part(name, **settings), pieces, question)
    assert_same_results(framework, pieces, expected)


FIG_8 = [13.79, 13.58, 11.91, 11.55, 10.94, 7.815, 7.665, 5.490, 4.416, 1.304, 0.8, 0.255, -0.198]
FIG_9 = [5.080, 3.854, 3.016, 1.734, 1.560, 1.146, 0.842, 0.823, 0.685]
SCORES = [0.91, 0.88, 0.2, 0.19]
PROBABILITY = {"score_scale": "probability", "min_k": 1}
LOGIT = {"score_scale": "logit", "assume_ratio": True, "reranker": None}


@pytest.mark.parametrize(
    ("scores", "options", "n_kept"),
    [
        (SCORES, PROBABILITY, 2),
        (SCORES, {**PROBABILITY, "min_score": 0.9, "min_keep": 0}, 1),
        (SCORES, {**PROBABILITY, "min_score": 0.95, "min_keep": 2}, 2),
        (SCORES, {**PROBABILITY, "ratio": 0.0, "share_of_best": None}, 4),
        (SCORES, {**PROBABILITY, "ratio": 0.0, "share_of_best": 0.21}, 3),
        ([3.0, 2.5, -4.0], {"score_scale": "logit", "min_k": 1}, 2),
        (FIG_8, LOGIT, 9),
        (FIG_9, LOGIT, 9),
        (FIG_9, {**LOGIT, "share_of_best": 0.25}, 5),
    ],
)
def test_scores_of_others_such_as_sage_s_figures_are_cut_at_the_drop(scores, options, n_kept):
    selections = []
    for framework in FRAMEWORKS.values():
        part = framework.part("GradientSelection", **options)
        pieces = [framework.piece("x", f"{i:02}", score) for i, score in enumerate(scores)]
        selections.append(part.select(pieces, "q"))
    assert_same_decisions(*selections)
    assert [c.score for c in selections[0].kept] == scores[:n_kept]


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("GradientSelection", {"min_k": 1}),
        ("GradientSelection", {"max_tokens": 30}),
        ("Rerank", {"top_n": 3}),
        ("Redundancy", {}),
    ],
)
@each_question
def test_pieces_of_stock_splitters_and_stores_are_treated_alike(name, options, question):
    splitter = RecursiveCharacterTextSplitter(chunk_size=90, chunk_overlap=0)
    texts = {f"{n}-{i}": t for n, text in TEXTS.items() for i, t in enumerate(splitter.split_text(text))}
    store = FRAMEWORKS["langchain"].stock([FRAMEWORKS["langchain"].piece(t, n) for n, t in texts.items()])
    scored = store.similarity_search_with_score(question, 9)
    kept = []
    for framework in FRAMEWORKS.values():
        has_score = framework.name == "llamaindex"
        found = [framework.piece(d.page_content, d.id, s if has_score else None) for d, s in scored]
        cut = framework.cut(framework.part(name, **options), found, question)
        kept.append([(framework.id(piece), read_facts(piece)["reason"]) for piece in cut])
    assert kept[0] == kept[1]
    assert 0 < len(kept[0]) < len(scored)


class ById:
    """A reranker whose scores are told by the ids of the pieces."""

    name = "by-id"
    is_calibrated = True
    score_scale = "probability"

    def __init__(self, **scores):
        self.scores = scores
        self.queries = []

    def score(self, query, candidates):
        self.queries.append(query)
        return np.array([self.scores[c.doc_id] for c in candidates])


def pieces_of(framework, *texts, score=None):
    return [framework.piece(text, f"n{i}", score) for i, text in enumerate(texts)]


@each_framework
def test_scores_of_unknown_meaning_are_reranked_once_before_the_cut(framework):
    reranker = ById(n0=0.02, n1=0.9, n2=0.8)
    found = pieces_of(framework, "a", "b", "c", score=0.5)
    part = framework.part("GradientSelection", reranker=reranker, min_k=1, min_keep=1)
    kept = framework.cut(part, found, "q")
    assert [(framework.id(piece), framework.score(piece)) for piece in kept] == [("n1", 0.9), ("n2", 0.8)]
    assert [read_facts(piece)["reason"] for piece in kept] == [
        "among the first 1 (min_k)",
        "0.8 is above 0.3 × 0.9",
    ]
    assert read_facts(kept[0])["score_scale"] == "probability"
    assert read_facts(kept[0])["scores"] == {"retrieval": -1.0}
    again = framework.cut(part, kept, "q")
    assert [framework.id(piece) for piece in again] == ["n1", "n2"]
    assert reranker.queries == ["q"]


@each_framework
def test_without_a_reranker_scores_without_ratios_are_refused_with_advice(framework):
    with pytest.raises(ScoreScaleError, match="rerank first"):
        framework.cut(framework.part("GradientSelection", reranker=None), pieces_of(framework, "a", "b"), "q")
    cosine = framework.part("GradientSelection", reranker=None, score_scale="cosine")
    with pytest.raises(ScoreScaleError, match="cosine"):
        framework.cut(cosine, pieces_of(framework, "a", score=0.5), "q")


@each_framework
def test_reranking_orders_cuts_and_keeps_the_former_score(framework):
    reranker, found = ById(n0=0.25, n1=1.0, n2=0.5), pieces_of(framework, "a", "b", "c")
    kept = framework.cut(framework.part("Rerank", reranker=reranker, top_n=2), found, "q")
    assert [(framework.id(piece), framework.score(piece)) for piece in kept] == [("n1", 1.0), ("n2", 0.5)]
    assert type(framework.score(kept[0])) is float
    assert read_facts(kept[0]) == {
        "doc_id": "n1",
        "start": 0,
        "end": 1,
        "score": 1.0,
        "score_scale": "probability",
        "scores": {"retrieval": -1.0},
        "reason": "rank 1 of 3 by by-id",
    }
    assert len(framework.cut(framework.part("Rerank", reranker=reranker), found, "q")) == 3
    with pytest.raises(ValueError, match="greater than"):
        framework.part("Rerank", top_n=0)


@each_framework
def test_of_repetitions_the_better_stays_and_without_scores_the_earlier(framework):
    texts = ("Ada Brandt built the town clock.", "Rye bread keeps.", "Ada Brandt built the town clock!")
    part, found = framework.part("Redundancy"), pieces_of(framework, *texts)
    kept = framework.cut(part, found, "q")
    assert [framework.id(piece) for piece in kept] == ["n0", "n1"]
    assert framework.name == "langchain" or [piece.score for piece in kept] == [None, None]
    assert all("relevance_score" not in framework.metadata(piece) for piece in kept)
    reranker = framework.part("Rerank", reranker=ById(n0=0.1, n1=0.2, n2=0.3))
    kept = framework.cut(part, framework.cut(reranker, found, "q"), "q")
    assert [(framework.id(p), framework.score(p)) for p in kept] == [("n2", 0.3), ("n1", 0.2)]


@each_framework
def test_an_encoder_tells_paraphrases(framework):
    texts = ("Ada Brandt built the town clock.", "The clock of the town was built by Ada Brandt.")
    found = pieces_of(framework, *texts)
    assert len(framework.cut(framework.part("Redundancy"), found, "q")) == 2
    settings = {framework.encoder: HashEncoder(), "similarity_threshold": 0.6, "prefilter": 0.1}
    kept = framework.cut(framework.part("Redundancy", **settings), found, "q")
    assert [framework.id(piece) for piece in kept] == ["n0"]


@each_framework
@pytest.mark.parametrize("name", [*SETTINGS, "Rerank", "Evidence"])
def test_of_nothing_nothing_is_returned(framework, name):
    assert framework.cut(framework.part(name, **SETTINGS.get(name, {})), [], "q") == []


@each_framework
def test_replies_about_relevance_that_cannot_be_read_drop_nothing(framework):
    found = pieces_of(framework, "A wheel.", "Rye.")
    silent = framework.part("RelevanceFilter", llm=ScriptedLLM(lambda messages: "I would rather not say."))
    kept = framework.cut(silent, found, "q")
    assert [framework.id(piece) for piece in kept] == ["n0", "n1"]
    assert all("unscored" in read_facts(piece)["reason"] for piece in kept)
    part = framework.part("RelevanceFilter", llm=ScriptedLLM(wheels_are_relevant))
    assert [framework.id(piece) for piece in framework.cut(part, found, "q")] == ["n0"]


@each_framework
def test_impossible_settings_are_refused_at_once(framework):
    for name, settings in (
        ("GradientSelection", {"min_k": 0}),
        ("GradientSelection", {"mink": 3}),
        ("Redundancy", {"similarity_threshold": 2.0}),
        ("RelevanceFilter", {"llm": ScriptedLLM([]), "batch_size": 0}),
    ):
        with pytest.raises(ValueError, match=list(settings)[-1]):
            framework.part(name, **settings)


@each_framework
def test_one_part_serves_many_threads(framework):
    part = framework.part("GradientSelection", min_k=1)
    found = pieces_of(framework, *[f"word{i} fox" for i in range(20)])

    def best(i):
        return framework.id(framework.cut(part, found, f"word{i} cat")[0])

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(best, range(20))) == [f"n{i}" for i in range(20)]


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
    query, cut = QUESTIONS[0], []
    expected = PreciseRAG(HybridIndex.build(CORE, HashEncoder()), reranker=reranker).retrieve(query)
    assert expected.kept
    for framework in FRAMEWORKS.values():
        make = framework.retriever.from_documents
        found = framework.find(make(documents(framework), HashEncoder(), reranker=reranker), query)
        assert_same_excerpts(framework, found, [passage.excerpt for passage in context_passages(expected)])
        for name in ("Evidence", "GradientSelection"):
            kept = framework.cut(framework.part(name, reranker=reranker), found, query)
            assert kept
            cut.append([framework.text(piece) for piece in kept])
    assert cut[:2] == cut[2:]
