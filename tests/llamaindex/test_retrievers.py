"""What LlamaIndex asks of retrievers; what they find is in tests/adapters."""

import asyncio
import json
from collections import Counter

import pytest
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.span_handlers import SimpleSpanHandler
from llama_index.core.llms import MockLLM
from llama_index.core.node_parser import MarkdownNodeParser, SentenceSplitter
from llama_index.core.schema import Document, MetadataMode, NodeRelationship, NodeWithScore, QueryBundle
from llama_index.core.vector_stores import SimpleVectorStore, VectorStoreQuery
from llama_index.core.vector_stores.types import (
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
)

from llamaindex_precise import (
    EvidencePostprocessor,
    PreciseRetriever,
    SelfFeedbackQueryEngine,
    SemanticSegmentationNodeParser,
)
from llamaindex_precise.filters import to_core_filter
from precise_rag import Document as CoreDocument
from precise_rag.errors import InputError
from precise_rag.facts import FACTS_KEY
from precise_rag.filters import as_filter
from precise_rag.testing import HashEncoder
from support.velm import PLAIN

QUESTION = "Who built the oven of river stone?"


def test_a_found_node_has_its_place_and_metadata_and_hides_what_its_document_hides(documents):
    retriever = PreciseRetriever.from_documents(documents, HashEncoder(), similarity_top_k=3)
    found = retriever.retrieve(QUESTION)
    best = found[0].node
    assert best.text == "The oven was built from river stone by Tomas Reyk."
    assert best.text == documents[1].text[best.start_char_idx : best.end_char_idx]
    assert best.relationships[NodeRelationship.SOURCE].metadata == {"title": "Bread"}
    assert best.get_content(MetadataMode.LLM) == f"title: Bread\n\n{best.text}"
    best.excluded_llm_metadata_keys.append("title")
    assert documents[1].excluded_llm_metadata_keys == []
    assert len(found) == 3
    assert all(json.loads(item.to_json()) for item in found)
    hidden = retriever.retrieve("Who was the last keeper, Ada Holm?")[0].node
    assert hidden.metadata["secret"] == "s3cret"
    for mode in (MetadataMode.EMBED, MetadataMode.LLM):
        assert "s3cret" not in hidden.get_content(mode)
        assert FACTS_KEY not in hidden.get_content(mode)
    nodes = SentenceSplitter(chunk_size=64, chunk_overlap=0).get_nodes_from_documents(documents)
    part = PreciseRetriever.from_documents(nodes, HashEncoder()).retrieve(QUESTION)[0].node
    assert part.ref_doc_id == best.ref_doc_id == "bakery"
    assert part.text == documents[1].text[part.start_char_idx : part.end_char_idx]


def test_titles_to_embed_take_part_in_the_search_and_others_do_not():
    texts = {
        "Borealis M-7 pump": "Service it every two years. Change the seal then.",
        "Austral K-2 pump": "Service it every month. Oil it.",
    }

    def found(titled=True, **hidden):
        documents = [
            Document(id_=t, text=text, metadata={"title": t} if titled else {}, **hidden)
            for t, text in texts.items()
        ]
        retriever = PreciseRetriever.from_documents(documents, HashEncoder(), **PLAIN)
        nodes = retriever.retrieve("How often should I service the Borealis M-7 pump?")
        return [(item.node.source_node.node_id, item.score) for item in nodes]

    assert found()[0][0] == "Borealis M-7 pump"
    for hidden in ("excluded_embed_metadata_keys", "excluded_llm_metadata_keys"):
        assert found(**{hidden: ["title"]}) == found(titled=False) != found()


async def test_a_query_may_bring_its_vector_or_other_texts_to_embed(documents):
    options = {"preset": "paretorag", "n_candidates": 1}
    retriever = PreciseRetriever.from_documents(documents, HashEncoder(), **options)
    plain = retriever.retrieve("river stone")[0]
    vector = HashEncoder().encode_queries(["river stone"])[0].tolist()
    for bundle in (
        QueryBundle("nothing alike", embedding=vector),
        QueryBundle("nothing alike", custom_embedding_strs=["river stone"]),
    ):
        for found in (retriever.retrieve(bundle), await retriever.aretrieve(bundle)):
            assert [item.node.node_id for item in found] == [plain.node.node_id]
            assert found[0].score == pytest.approx(plain.score, abs=1e-6)


async def test_a_search_has_one_span_that_runs_within_it(documents):
    retriever = PreciseRetriever.from_documents(documents, HashEncoder())
    spans, dispatcher = SimpleSpanHandler(), get_dispatcher()
    dispatcher.add_span_handler(spans)
    try:
        retriever.retrieve(QUESTION)
        await asyncio.gather(*(retriever.aretrieve(QUESTION) for _ in range(5)))
        EvidencePostprocessor(reranker="packaged")
    finally:
        dispatcher.span_handlers.remove(spans)
    counts = Counter(span.id_.partition("-")[0].rpartition(".")[2] for span in spans.completed_spans)
    assert counts == {"retrieve": 1, "_retrieve": 1, "aretrieve": 5, "_aretrieve": 5}


@pytest.mark.parametrize("metadata", [{}, {"title": "Pump M-7"}])
def test_what_stands_above_is_in_a_prompt_once(metadata):
    text = "# Pump M-7\n\nIt is red.\n\n## Care\n\n### Oil\n\nChange the oil. It is black.\n\nAsk Ada."
    documents, question = [Document(text=text, metadata=metadata)], "How is the oil changed?"
    for parser in (SemanticSegmentationNodeParser(chunk_size=8), MarkdownNodeParser()):
        nodes = parser.get_nodes_from_documents(documents)
        given = [NodeWithScore(node=node, score=0.5) for node in nodes]
        part = EvidencePostprocessor(reranker="packaged", share_of_best=0.0, min_score=0.0)
        over = PreciseRetriever.from_documents(nodes, HashEncoder(), reranker="packaged")
        found = [*part.postprocess_nodes(given, query_str=question), *over.retrieve(question)]
        found += given if isinstance(parser, SemanticSegmentationNodeParser) else []
        above = [one.get_content(MetadataMode.LLM).removesuffix(one.get_content().strip()) for one in found]
        assert any("Pump M-7" in one and "Care" in one for one in above)
        assert all(one.count(title) <= 1 for one in above for title in ("Pump M-7", "Care", "Oil"))
        assert not any("header_path" in one and "section" in one for one in above)


# LlamaIndex's metadata filters, as filters of the core and in retrievers.


def one(operator: FilterOperator, value, key="year"):
    return MetadataFilters(filters=[MetadataFilter(key=key, value=value, operator=operator)])


def test_operators_for_parts_lists_and_conditions_that_nest_have_their_own_in_the_core():
    for operator in (FilterOperator.CONTAINS, FilterOperator.TEXT_MATCH):
        assert to_core_filter(one(operator, "a")) == as_filter({"$and": [{"year": {"$contains": "a"}}]})
    parts = [{"tags": {"$contains": "a"}}, {"tags": {"$contains": "b"}}]
    for operator, name in ((FilterOperator.ANY, "$or"), (FilterOperator.ALL, "$and")):
        found = to_core_filter(one(operator, ["a", "b"], "tags"))
        assert found == as_filter({"$and": [{name: parts}]})
    filters = [one(FilterOperator.GT, 3), MetadataFilter(key="who", value="me")]
    expected = {"$or": [{"$and": [{"year": {"$gt": 3}}]}, {"who": "me"}]}
    either = MetadataFilters(filters=filters, condition=FilterCondition.OR)
    assert to_core_filter(either) == as_filter(expected)


@pytest.mark.parametrize("condition", FilterCondition)
@pytest.mark.parametrize("operator", ["==", "!=", ">", "<", ">=", "<=", "in", "nin", "is_empty"])
def test_filters_are_met_by_what_meets_them_in_llamaindex(operator: str, condition: FilterCondition) -> None:
    year = MetadataFilter(key="year", value=[3] if "in" in operator else 3, operator=FilterOperator(operator))
    both = MetadataFilters(filters=[year, MetadataFilter(key="who", value="me")], condition=condition)
    given = ({}, {"year": 3}, {"year": 5}, {"who": "me"}, {"year": 3, "who": "me"}, {"who": "you"})
    nodes = [Document(id_=str(n), embedding=[1.0], metadata=one) for n, one in enumerate(given)]
    store = SimpleVectorStore()
    store.add(nodes)
    found = store.query(VectorStoreQuery(query_embedding=[1.0], similarity_top_k=9, filters=both)).ids
    wanted = to_core_filter(both)
    assert {n.id_ for n in nodes if wanted.matches(CoreDocument("a", "", n.metadata))} == set(found or ())


def test_filters_that_the_core_does_not_have_or_that_nest_too_deeply_are_refused():
    with pytest.raises(InputError, match="TEXT_MATCH_INSENSITIVE"):
        to_core_filter(one(FilterOperator.TEXT_MATCH_INSENSITIVE, "a"))
    nested = MetadataFilters(filters=[])
    for _ in range(5_000):
        nested = MetadataFilters(filters=[nested])
    with pytest.raises(InputError, match="nested"):
        to_core_filter(nested)


def test_a_setting_of_the_pipeline_that_is_set_later_is_refused(documents):
    retriever = PreciseRetriever.from_documents(documents, HashEncoder(), reranker="packaged")
    engine = SelfFeedbackQueryEngine(retriever, MockLLM())
    for component in (retriever, engine):
        with pytest.raises(InputError, match="max_tokens is a setting of the pipeline"):
            component.max_tokens = 20
    retriever.similarity_top_k = 2
    assert len(retriever.retrieve(QUESTION)) == 2
