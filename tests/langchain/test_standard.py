"""LangChain's own test suites."""

import pytest

from langchain_precise import PreciseEmbeddings, PreciseRetriever
from precise_rag.selection import GradientSelector
from precise_rag.testing import HashEncoder
from support.frameworks import LANGCHAIN
from support.velm import QUESTIONS, documents

pytest.importorskip("langchain_tests")
from langchain_tests.integration_tests import EmbeddingsIntegrationTests, RetrieversIntegrationTests
from langchain_tests.unit_tests import EmbeddingsUnitTests


class TestPreciseRetriever(RetrieversIntegrationTests):
    retriever_constructor = PreciseRetriever
    retriever_query_example = QUESTIONS[0]

    @property
    def retriever_constructor_params(self):
        given, options = documents(LANGCHAIN), {"selector": GradientSelector()}
        return {"rag": PreciseRetriever.from_documents(given, HashEncoder(), **options).rag}


class TestEmbeddingsUnit(EmbeddingsUnitTests):
    embeddings_class = PreciseEmbeddings

    @property
    def embedding_model_params(self):
        return {"model": HashEncoder()}


class TestEmbeddings(EmbeddingsIntegrationTests):
    embeddings_class = PreciseEmbeddings

    @property
    def embedding_model_params(self):
        return {"model": HashEncoder()}
