import pickle

import pytest
from llama_index.core.schema import MetadataMode, NodeRelationship, NodeWithScore, RelatedNodeInfo, TextNode

from llamaindex_precise import EvidencePostprocessor
from precise_rag import read_facts
from precise_rag.errors import InputError

TEXT = (
    "The harbour has three piers. Ilse Brandt is the captain of the ferry to Velm. "
    "She has sailed since 1998. "
    "The bakery opens at six. Rye bread is sold on Fridays."
)
FISH = "Herring is cheap in autumn. The market closes at noon."
QUESTION = "Who is the captain of the ferry?"


def nodes() -> list[NodeWithScore]:
    source = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id="harbour")}
    return [
        NodeWithScore(node=TextNode(id_="b", text=FISH, metadata={"page": 2}), score=0.7),
        NodeWithScore(
            node=TextNode(
                id_="a",
                text=TEXT,
                metadata={"page": 1},
                relationships=source,
                start_char_idx=100,
                end_char_idx=100 + len(TEXT),
                excluded_llm_metadata_keys=["page"],
            ),
            score=0.4,
        ),
    ]


def cut(**settings):
    postprocessor = EvidencePostprocessor(
        reranker="packaged", **{"min_keep": 1, "min_score": 0.3, **settings}
    )
    return postprocessor.postprocess_nodes(nodes(), query_str=QUESTION)


def test_evidence_has_the_source_the_offsets_and_the_keys_of_its_node():
    node = next(item.node for item in cut() if "Ilse Brandt" in item.node.text)
    assert TEXT[node.start_char_idx - 100 : node.end_char_idx - 100] == node.text
    assert (node.ref_doc_id, node.metadata["page"]) == ("harbour", 1)
    assert set(node.excluded_llm_metadata_keys) >= {"page", "precise"}
    assert "page" not in node.get_content(MetadataMode.LLM)
    facts = read_facts(node)
    assert (facts["start"], facts["end"]) == (node.start_char_idx, node.end_char_idx)


def test_metadata_is_no_evidence():
    given = [NodeWithScore(node=TextNode(text=FISH, metadata={"title": "The captain of the ferry. Ilse."}))]
    found = EvidencePostprocessor(reranker="packaged").postprocess_nodes(given, query_str=QUESTION)
    assert all(item.node.text in FISH for item in found)


async def test_async_and_pickled_give_the_same():
    postprocessor = pickle.loads(pickle.dumps(EvidencePostprocessor(reranker="packaged", max_tokens=30)))
    found = await postprocessor.apostprocess_nodes(nodes(), query_str=QUESTION)
    expected = postprocessor.postprocess_nodes(nodes(), query_str=QUESTION)
    assert [item.node.text for item in found] == [item.node.text for item in expected]
    assert EvidencePostprocessor.from_dict(postprocessor.to_dict()).max_tokens == 30


def test_without_a_query_there_is_no_evidence():
    with pytest.raises(InputError, match="needs the query"):
        EvidencePostprocessor(reranker="packaged").postprocess_nodes(nodes())
