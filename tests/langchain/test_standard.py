"""LangChain's own test suites."""

import pytest
from langchain_core.documents import Document

from langchain_precise import PreciseEmbeddings, PreciseRetriever
from precise_rag.selection import GradientSelector
from precise_rag.testing import HashEncoder

pytest.importorskip("langchain_tests")
from langchain_tests.integration_tests import EmbeddingsIntegrationTests, RetrieversIntegrationTests
from langchain_tests.unit_tests import EmbeddingsUnitTests


class TestPreciseRetriever(RetrieversIntegrationTests):
    retriever_constructor = PreciseRetriever
    retriever_query_example = "When was the town clock built?"

    @property
    def retriever_constructor_params(self):
        documents = [
            Document("The town harbour freezes in January. Ice breakers keep a channel open.", id="harbour"),
            Document("The town clock was built in 1911. The keeper winds it up on Sundays.", id="clock"),
            Document("The town bread is baked twice. Sailors from the town took it to sea.", id="bread"),
        ]
        options = {"selector": GradientSelector()}
        return {"rag": PreciseRetriever.from_documents(documents, HashEncoder(), **options).rag}


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
