import asyncio
import copy
import json
import re

import numpy as np
import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.runnables import RunnableConfig

from langchain_precise import RedundancyCompressor, RelevanceFilterCompressor, RerankCompressor
from precise_rag.filtering import RedundancyFilter
from precise_rag.testing import HashEncoder, ScriptedLLM

FOUND = [
    Document("Ada Brandt built the town clock in 1911.", id="a"),
    Document("Rye bread keeps for a month.", id="b"),
    Document("The clock of the town was built by Ada Brandt.", id="c"),
    Document("Ada Brandt built the town clock in 1911!", id="d"),
]


def relevance(prompt):
    """High scores for chunks about the clock, in whatever order they are shown."""
    chunks = re.findall(r"^\S+ chunk (\S+)\n(.*)$", prompt, re.MULTILINE)
    scores = {key: 0.9 if "clock" in text else 0.1 for key, text in chunks}
    return json.dumps(
        {"scores": [{"id": k, "base": s, "reflection": s, "critic": s} for k, s in scores.items()]}
    )


class ByLength:
    name = "by-length"
    score_scale = "logit"

    def score(self, query, candidates):
        return np.array([len(c.text) for c in candidates], dtype=np.float32)


def test_reranking_orders_and_cuts():
    kept = RerankCompressor(reranker=ByLength(), top_n=2).compress_documents(FOUND, "q")
    assert [(d.id, d.metadata["relevance_score"]) for d in kept] == [("c", 46.0), ("a", 40.0)]
    assert type(kept[0].metadata["relevance_score"]) is float
    assert kept[0].metadata["precise_rag"] == {
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

    class Lengths(compressors.cross_encoder.BaseCrossEncoder):
        def score(self, pairs):
            return [len(text) / 100 for _, text in pairs]

    stock = compressors.CrossEncoderReranker(model=Lengths(), top_n=4)
    kept = RerankCompressor(reranker=stock, top_n=1).compress_documents(FOUND, "q")
    assert [d.id for d in kept] == ["c"]


def test_the_packaged_reranker_finds_the_answer():
    best = RerankCompressor().compress_documents(FOUND[1:3], "Who built the town clock?")[0]
    assert best.id == "c"
    assert 0.0 <= best.metadata["relevance_score"] <= 1.0


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
    same_words = RedundancyCompressor(encoder=HashEncoder(), threshold=0.7, prefilter=0.1)
    assert [d.id for d in same_words.compress_documents(FOUND, "q")] == ["a", "b"]
    assert RedundancyCompressor(encoder=DeterministicFakeEmbedding(size=8)).compress_documents(FOUND[:1], "q")


def test_the_redundancy_options_are_the_cores():
    compressor = RedundancyCompressor()
    assert (compressor.threshold, compressor.prefilter) == (
        RedundancyFilter().threshold,
        RedundancyFilter().prefilter,
    )
    with pytest.raises(ValueError, match="threshold"):
        RedundancyCompressor(threshold=2.0)


def test_only_what_the_model_finds_relevant_stays(scripted_chat):
    chat = scripted_chat(script=relevance)
    compressor = RelevanceFilterCompressor(llm=chat)
    kept = compressor.compress_documents(FOUND, "Who built the town clock?")
    assert [d.id for d in kept] == ["a", "c", "d"]
    assert len(chat.prompts) == 1
    assert kept[0].metadata["precise_rag"]["scores"]["relevance"] == pytest.approx(0.9)
    assert "relevance 0.90 reaches" in kept[0].metadata["precise_rag"]["reason"]
    assert asyncio.run(compressor.acompress_documents(FOUND, "Who built the town clock?")) == kept


def test_an_answer_that_cannot_be_read_drops_nothing():
    compressor = RelevanceFilterCompressor(llm=ScriptedLLM(lambda messages: "no idea"))
    kept = compressor.compress_documents(FOUND, "q")
    assert [d.id for d in kept] == ["a", "b", "c", "d"]
    assert "unscored" in kept[0].metadata["precise_rag"]["reason"]


def test_the_cache_saves_calls(scripted_chat):
    chat = scripted_chat(script=relevance)
    compressor = RelevanceFilterCompressor(llm=chat, cache={})
    assert compressor.compress_documents(FOUND, "q") == compressor.compress_documents(FOUND, "q")
    assert len(chat.prompts) == 1


@pytest.mark.parametrize("config", [None, {"max_concurrency": 2}])
def test_no_more_calls_at_once_than_allowed(scripted_chat, config: RunnableConfig | None):
    allowed = 2 if config else 3
    input = {"query": "q", "documents": FOUND}
    options = {"batch_size": 1, "max_concurrency": 3}
    chat = scripted_chat(script=relevance, delay=0.01)
    RelevanceFilterCompressor(llm=chat, **options).invoke(input, config)
    assert 1 <= chat.peak <= allowed
    assert len(chat.prompts) == len(FOUND)
    chat = scripted_chat(script=relevance, delay=0.01)
    asyncio.run(RelevanceFilterCompressor(llm=chat, **options).ainvoke(input, config))
    assert chat.peak == allowed


async def test_model_calls_are_children_of_the_compressor(scripted_chat):
    compressor = RelevanceFilterCompressor(llm=scripted_chat(script=relevance), batch_size=1)
    input = {"query": "q", "documents": FOUND}
    events = [event async for event in compressor.astream_events(input, {"tags": ["mine"]}, version="v2")]
    runs = [event for event in events if event["event"] == "on_chat_model_start"]
    assert len(runs) == len(FOUND)
    assert all(run["parent_ids"] == [events[0]["run_id"]] and "mine" in run["tags"] for run in runs)
    names = [event["name"] for event in events if event["event"] == "on_custom_event"]
    assert names == ["precise_rag_call"] * len(FOUND) + ["precise_rag_stage"]


def test_something_that_is_no_model_is_refused():
    with pytest.raises(ValueError, match="language model"):
        RelevanceFilterCompressor(llm=object())
    with pytest.raises(ValueError, match="batch_size"):
        RelevanceFilterCompressor(llm=ScriptedLLM([]), batch_size=0)
