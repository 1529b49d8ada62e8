"""LangChain serialization: models given as objects are not saved."""

import inspect
import json

import pytest
from langchain_core.language_models import FakeListChatModel
from langchain_core.load import dumps, load

from langchain_precise import (
    RedundancyCompressor,
    RelevanceFilterCompressor,
)
from precise_rag.testing import HashEncoder

pytestmark = [
    pytest.mark.filterwarnings("ignore::langchain_core._api.LangChainBetaWarning"),
    pytest.mark.skipif(
        "allowed_objects" not in inspect.signature(load).parameters,
        reason="this langchain-core has no list of allowed classes yet",
    ),
]


def test_an_object_cannot_be_written_and_says_so():
    dumped = json.loads(dumps(RedundancyCompressor(embeddings=HashEncoder())))
    assert dumped["kwargs"]["embeddings"]["type"] == "not_implemented"
    with pytest.raises(NotImplementedError):
        load(dumped, allowed_objects=[RedundancyCompressor], valid_namespaces=["langchain_precise"])


def test_models_are_not_written():
    dumped = json.loads(dumps(RelevanceFilterCompressor(llm=FakeListChatModel(responses=["x"]))))
    assert dumped["kwargs"]["llm"]["type"] == "not_implemented"
    assert "prices" not in dumped["kwargs"]
