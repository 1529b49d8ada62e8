"""LangChain serialization: settings can be saved and loaded, models given as objects cannot."""

import inspect
import json

import pytest
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.load import dumps, load, loads

from langchain_precise import SelfFeedbackChain
from langchain_precise.papers import (
    GradientSelectionCompressor,
    RedundancyCompressor,
    RelevanceFilterCompressor,
    RerankCompressor,
    SentenceContextRetriever,
)
from precise_rag.testing import HashEncoder, ScriptedLLM

pytestmark = [
    pytest.mark.filterwarnings("ignore::langchain_core._api.LangChainBetaWarning"),
    pytest.mark.skipif(
        "allowed_objects" not in inspect.signature(load).parameters,
        reason="this langchain-core has no list of allowed classes yet",
    ),
]


@pytest.mark.parametrize(
    "compressor",
    [
        GradientSelectionCompressor(min_k=2, min_score=0.1, max_tokens=300),
        GradientSelectionCompressor(reranker=None, score_scale="bm25"),
        RerankCompressor(top_n=3),
        RedundancyCompressor(similarity_threshold=0.8),
    ],
    ids=lambda compressor: type(compressor).__name__,
)
def test_settings_survive(compressor):
    text = dumps(compressor)
    again = loads(text, allowed_objects=[type(compressor)], valid_namespaces=["langchain_precise"])
    assert type(again) is type(compressor)
    assert again.model_dump() == compressor.model_dump()
    assert type(compressor)(**compressor.model_dump()).model_dump() == compressor.model_dump()
    with pytest.raises(ValueError, match="not allowed"):
        loads(text, allowed_objects="core")
    with pytest.raises(ValueError, match="namespace"):
        loads(text, allowed_objects=[type(compressor)])


def test_an_object_cannot_be_written_and_says_so():
    dumped = json.loads(dumps(RedundancyCompressor(embeddings=HashEncoder())))
    assert dumped["kwargs"]["embeddings"]["type"] == "not_implemented"
    with pytest.raises(NotImplementedError):
        load(dumped, allowed_objects=[RedundancyCompressor], valid_namespaces=["langchain_precise"])


def test_components_around_live_objects_are_written_as_not_loadable():
    retriever = SentenceContextRetriever.from_documents([Document("One sentence.")], HashEncoder())
    chain = SelfFeedbackChain(retriever=retriever, llm=ScriptedLLM([]))
    for component in (retriever, chain):
        assert json.loads(dumps(component))["type"] == "not_implemented"


def test_models_and_caches_are_not_written():
    compressor = RelevanceFilterCompressor(
        llm=FakeListChatModel(responses=["x"]), cache={"key": (0.1, 0.1, 0.1)}
    )
    dumped = json.loads(dumps(compressor))
    assert dumped["kwargs"]["llm"]["type"] == "not_implemented"
    assert dumped["kwargs"].keys().isdisjoint({"cache", "prices"})
