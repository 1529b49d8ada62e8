import copy

import numpy as np
import pytest
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.runnables import (
    ConfigurableField,
    RunnableParallel,
    RunnablePassthrough,
    RunnableSerializable,
)

from langchain_precise.papers import (
    CompressorInput,
    GradientSelectionCompressor,
    RedundancyCompressor,
    RerankCompressor,
)
from precise_rag.candidate_filters import RedundancyFilter
from precise_rag.errors import ScoreScaleError
from precise_rag.facts import read_facts
from precise_rag.selection import DEFAULT_SELECTOR
from precise_rag.testing import HashEncoder
from support.alike import assert_alike

FOUND = [
    Document("Ada Brandt built the town clock in 1911.", id="a"),
    Document("Rye bread keeps for a month.", id="b"),
    Document("The clock of the town was built by Ada Brandt.", id="c"),
    Document("Ada Brandt built the town clock in 1911!", id="d"),
]
SAGE_FIG_8 = [5.103, 4.816, 4.684, 4.617, 4.416, 1.304, 1.189]


def scored(*scores):
    return [Document(f"text {i}", id=str(i), metadata={"relevance_score": s}) for i, s in enumerate(scores)]


class LastWord:
    """A reranker whose score is the number that a text ends with."""

    name = "last-word"
    is_calibrated = True
    score_scale = "probability"

    def __init__(self):
        self.queries = []

    def score(self, query, candidates):
        self.queries.append(query)
        return np.array([float(c.text.split()[-1]) for c in candidates])


def test_the_papers_figure_is_cut_where_the_paper_cuts_it():
    compressor = GradientSelectionCompressor(reranker=None, score_scale="bm25", min_k=1)
    kept = compressor.compress_documents(scored(*SAGE_FIG_8), "q")
    assert [read_facts(d)["score"] for d in kept] == SAGE_FIG_8[:5]


def test_documents_are_reranked_before_the_cut_and_come_back_best_first():
    documents = [Document("a 0.02", id="a"), Document("b 0.9", id="b"), Document("c 0.8", id="c")]
    before = copy.deepcopy(documents)

    kept = GradientSelectionCompressor(reranker=LastWord(), min_k=1, min_keep=1).compress_documents(
        documents, "q"
    )

    assert [(d.id, read_facts(d)["score"]) for d in kept] == [("b", 0.9), ("c", 0.8)]
    assert [read_facts(d)["reason"] for d in kept] == [
        "among the first 1 (min_k)",
        "0.8 is above 0.3 × 0.9",
    ]
    assert all(type(read_facts(d)["score"]) is float for d in kept)
    assert documents == before


def test_reranked_documents_are_not_reranked_again():
    reranker = LastWord()
    compressor = GradientSelectionCompressor(reranker=reranker, min_k=1)
    once = compressor.compress_documents([Document("a 0.9"), Document("b 0.8")], "q")
    twice = compressor.compress_documents(once, "q")
    assert reranker.queries == ["q"]
    assert [d.page_content for d in twice] == ["a 0.9", "b 0.8"]


def test_select_explains_the_dropped_ones_too():
    selection = GradientSelectionCompressor(reranker=LastWord(), min_k=1, min_keep=1).select(
        [Document("a 0.9"), Document("b 0.25")], "q"
    )
    assert [d.kept for d in selection.decisions] == [True, False]
    assert "sharp drop" in selection.reasons[1]


def test_scores_without_ratios_are_refused_rather_than_guessed():
    compressor = GradientSelectionCompressor(reranker=None)
    with pytest.raises(ScoreScaleError, match="rerank first"):
        compressor.compress_documents([Document("a"), Document("b")], "q")
    with pytest.raises(ScoreScaleError, match="cosine"):
        GradientSelectionCompressor(reranker=None, score_scale="cosine").compress_documents(scored(0.5), "q")


def test_options_are_those_of_the_selector():
    assert GradientSelectionCompressor(reranker=None).selector() == DEFAULT_SELECTOR
    with pytest.raises(ValueError, match="min_k"):
        GradientSelectionCompressor(reranker=None, min_k=0)
    with pytest.raises(ValueError, match="topk"):
        GradientSelectionCompressor(reranker=None, **{"topk": 3})


def test_nothing_in_nothing_out():
    assert GradientSelectionCompressor(reranker=LastWord()).compress_documents([], "q") == []


async def test_every_way_to_call_it_gives_the_same():
    compressor = GradientSelectionCompressor(reranker=LastWord(), min_k=1, min_keep=1)
    documents = [Document("a 0.9"), Document("b 0.8"), Document("c 0.1")]
    expected = compressor.compress_documents(documents, "q")
    runnable = compressor.as_runnable()
    input = CompressorInput(query="q", documents=documents)

    assert len(expected) == 2
    assert await compressor.acompress_documents(documents, "q") == expected
    assert runnable.invoke(input) == expected
    assert await runnable.ainvoke(input) == expected
    assert runnable.batch([input, input], {"max_concurrency": 1}) == [expected, expected]
    assert list(runnable.stream(input)) == [expected]


def test_it_is_a_compressor_and_a_runnable_with_a_schema():
    compressor = GradientSelectionCompressor(reranker=None)
    assert isinstance(compressor, BaseDocumentCompressor)
    assert isinstance(compressor.as_runnable(), RunnableSerializable)
    schema = compressor.as_runnable().get_input_jsonschema()["$defs"]["CompressorInput"]
    assert schema["required"] == ["query", "documents"]


async def test_it_pipes_and_tells_callbacks_what_it_decided():
    chain = RunnableParallel(
        query=RunnablePassthrough(), documents=lambda query: [Document("a 0.9"), Document("b 0.1")]
    ) | GradientSelectionCompressor(reranker=LastWord(), min_k=1, min_keep=1)
    events = [event async for event in chain.astream_events("q", version="v2")]
    [ranked, decided] = [e["data"] for e in events if e["event"] == "on_custom_event"]
    assert ranked["stage"] == "rerank"
    assert decided["stage"] == "GradientSelectionCompressor"
    assert [(c["score"], c["kept"]) for c in decided["candidates"]] == [(0.9, True), (0.1, False)]
    assert [d.page_content for d in events[-1]["data"]["output"]] == ["a 0.9"]


def test_settings_can_be_configured_for_one_call():
    compressor = GradientSelectionCompressor(reranker=None, score_scale="bm25", min_k=1).configurable_fields(
        max_k=ConfigurableField(id="max_k")
    )
    input = {"query": "q", "documents": scored(*SAGE_FIG_8)}
    assert len(compressor.invoke(input)) == 5
    assert len(compressor.invoke(input, {"configurable": {"max_k": 2}})) == 2


def test_threads_agree():
    compressor = GradientSelectionCompressor(min_k=1)
    inputs = [
        {"query": f"text {i}", "documents": [Document(f"text {n}") for n in range(8)]} for i in range(8)
    ]
    results = compressor.batch(inputs * 4, {"max_concurrency": 8})
    assert_alike(results, [compressor.invoke(i) for i in inputs] * 4)


class ByLength:
    name = "by-length"
    score_scale = "logit"

    def score(self, query, candidates):
        return np.array([len(c.text) for c in candidates], dtype=np.float32)


def test_reranking_orders_and_cuts():
    kept = RerankCompressor(reranker=ByLength(), top_n=2).compress_documents(FOUND, "q")
    assert [(d.id, read_facts(d)["score"]) for d in kept] == [("c", 46.0), ("a", 40.0)]
    assert type(read_facts(kept[0])["score"]) is float
    assert read_facts(kept[0]) == {
        "doc_id": "c",
        "start": 0,
        "end": 46,
        "score": 46.0,
        "score_scale": "logit",
        "scores": {"retrieval": -2.0},
        "reason": "rank 1 of 4 by by-length",
    }
    assert len(RerankCompressor(reranker=ByLength()).compress_documents(FOUND, "q")) == 4
    with pytest.raises(ValueError, match="greater than or equal to 1"):
        RerankCompressor(top_n=0)


def test_another_compressor_of_langchain_reranks():
    compressors = pytest.importorskip("langchain_classic.retrievers.document_compressors")

    def score(self, pairs):
        return [len(text) / 100 for _, text in pairs]

    lengths = type("Lengths", (compressors.cross_encoder.BaseCrossEncoder,), {"score": score})
    stock = compressors.CrossEncoderReranker(model=lengths(), top_n=4)
    kept = RerankCompressor(reranker=stock, top_n=1).compress_documents(FOUND, "q")
    assert [d.id for d in kept] == ["c"]


def test_the_packaged_reranker_finds_the_answer():
    best = RerankCompressor().compress_documents(FOUND[1:3], "Who built the town clock?")[0]
    assert best.id == "c"
    assert 0.0 <= read_facts(best)["score"] <= 1.0


def test_a_repetition_goes_and_the_earlier_stays():
    before = copy.deepcopy(FOUND)
    kept = RedundancyCompressor().compress_documents(FOUND, "q")
    assert [d.id for d in kept] == ["a", "b", "c"]
    assert all("relevance_score" not in d.metadata for d in kept)
    assert before == FOUND
    dropped = RedundancyCompressor().select(FOUND, "q").decisions[-1]
    assert "repeats a:0-40" in dropped.reason


def test_of_two_scored_repetitions_the_better_stays():
    scored = [
        Document(d.page_content, id=d.id, metadata={"relevance_score": float(i)}) for i, d in enumerate(FOUND)
    ]
    compressor = RedundancyCompressor()
    ranked = RerankCompressor(reranker=ByLength()).compress_documents(scored, "q")
    assert [d.id for d in compressor.compress_documents(ranked, "q")] == ["c", "a", "b"]


def test_an_encoder_tells_paraphrases():
    same_words = RedundancyCompressor(embeddings=HashEncoder(), similarity_threshold=0.7, prefilter=0.1)
    assert [d.id for d in same_words.compress_documents(FOUND, "q")] == ["a", "b"]
    assert RedundancyCompressor(embeddings=DeterministicFakeEmbedding(size=8)).compress_documents(
        FOUND[:1], "q"
    )


def test_the_redundancy_options_are_the_cores():
    compressor = RedundancyCompressor()
    assert (compressor.similarity_threshold, compressor.prefilter) == (
        RedundancyFilter().similarity_threshold,
        RedundancyFilter().prefilter,
    )
    with pytest.raises(ValueError, match="threshold"):
        RedundancyCompressor(similarity_threshold=2.0)
