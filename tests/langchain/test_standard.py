"""LangChain's own test suites."""

import pytest
from langchain_core.documents import Document

from langchain_precise import PreciseEmbeddings, PreciseRetriever
from langchain_precise.papers import HybridRetriever, SentenceContextRetriever, WordSentenceRetriever
from precise_rag.selection import GradientSelector
from precise_rag.testing import HashEncoder

pytest.importorskip("langchain_tests")
from langchain_tests.integration_tests import EmbeddingsIntegrationTests, RetrieversIntegrationTests
from langchain_tests.unit_tests import EmbeddingsUnitTests


def retriever_over_a_town(kind, **options):
    documents = [
        Document("The town harbour freezes in January. Ice breakers keep a channel open.", id="harbour"),
        Document("The town clock was built in 1911. The keeper winds it up on Sundays.", id="clock"),
        Document("The town bread is baked twice. Sailors from the town took it to sea.", id="bread"),
    ]
    return kind.from_documents(documents, HashEncoder(), **options)


class RetrieverSuite(RetrieversIntegrationTests):
    retriever_query_example = "When was the town clock built?"

    @property
    def retriever_constructor_params(self):
        return {"index": retriever_over_a_town(self.retriever_constructor).index}


class TestSentenceContextRetriever(RetrieverSuite):
    retriever_constructor = SentenceContextRetriever


class TestWordSentenceRetriever(RetrieverSuite):
    retriever_constructor = WordSentenceRetriever


class TestHybridRetriever(RetrieverSuite):
    retriever_constructor = HybridRetriever


class TestPreciseRetriever(RetrieverSuite):
    retriever_constructor = PreciseRetriever

    @property
    def retriever_constructor_params(self):
        return {"rag": retriever_over_a_town(PreciseRetriever, selector=GradientSelector()).rag}


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
