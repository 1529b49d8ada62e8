"""What LlamaIndex asks of postprocessors; what they decide is in tests/adapters."""

import pytest
from llama_index.core import Settings
from llama_index.core.callbacks import CallbackManager, CBEventType, LlamaDebugHandler
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import (
    Document,
    ImageDocument,
    MetadataMode,
    NodeRelationship,
    NodeWithScore,
    QueryBundle,
    RelatedNodeInfo,
    TextNode,
)

from llamaindex_precise import (
    EvidencePostprocessor,
    GradientSelectionPostprocessor,
    PreciseRerankPostprocessor,
    RedundancyPostprocessor,
    RelevanceFilterPostprocessor,
    SemanticSegmentationNodeParser,
)
from precise_rag.errors import InputError
from precise_rag.facts import read_facts
from precise_rag.testing import HashEncoder, ScriptedLLM
from precise_rag.trace import StageRecord
from support.frameworks import events_of_llamaindex
from support.scored import Scored
from support.velm import wheels_are_relevant

SCORED = Scored(lambda text: ("red" in text) / 2 + ("fox" in text) / 2)


def scored(*pairs: tuple[str, float | None]) -> list[NodeWithScore]:
    return [NodeWithScore(node=TextNode(id_=f"n{i}", text=t), score=s) for i, (t, s) in enumerate(pairs)]


def ids(nodes: list[NodeWithScore]) -> list[str]:
    return [item.node.node_id for item in nodes]


def test_a_reranking_is_announced_and_needs_a_query(events):
    debug = LlamaDebugHandler(print_trace_on_end=False)
    nodes = scored(("green sea", None), ("red fox", None), ("red sea", None))
    manager = CallbackManager([debug])
    rerank = PreciseRerankPostprocessor(reranker=SCORED, top_n=2, callback_manager=manager)
    result = rerank.postprocess_nodes(nodes, query_bundle=QueryBundle("red fox"))
    assert [(item.node.node_id, item.score) for item in result] == [("n1", 1.0), ("n2", 0.5)]
    start, end = (event for event in events if "ReRank" in event.class_name())
    assert (start.model_name, start.top_n, start.query.query_str) == ("scored", 2, "red fox")
    assert len(start.nodes) == 3
    assert ids(end.nodes) == ["n1", "n2"]
    assert len(debug.get_event_pairs(CBEventType.RERANKING)) == 1
    for part in (rerank, GradientSelectionPostprocessor(reranker=SCORED), EvidencePostprocessor()):
        with pytest.raises(InputError, match="the query must not be blank"):
            part.postprocess_nodes(nodes)


def test_objects_are_passed_again_when_settings_come_back():
    data = PreciseRerankPostprocessor(reranker=SCORED).to_dict()
    assert data["reranker"] == {"name": "scored"}
    with pytest.raises(InputError, match="reranker must be a name"):
        PreciseRerankPostprocessor.from_dict(data)
    assert PreciseRerankPostprocessor.from_dict(data, reranker=SCORED).to_dict() == data
    assert RedundancyPostprocessor(embed_model=HashEncoder()).to_dict()["encoder_name"] == "hash-256"


def test_the_scores_of_another_postprocessor_count_if_their_scale_is_told():
    class Backwards(BaseNodePostprocessor):
        def _postprocess_nodes(self, nodes, query_bundle=None):
            return [NodeWithScore(node=item.node, score=i / 4) for i, item in enumerate(nodes)][::-1]

    nodes = scored(("a", 0.3), ("b", 0.2), ("c", 0.1))
    rerank = PreciseRerankPostprocessor(reranker=Backwards(), score_scale="probability")
    found = rerank.postprocess_nodes(nodes, query_str="q")
    assert [(item.node.node_id, item.score) for item in found] == [("n2", 0.5), ("n1", 0.25), ("n0", 0.0)]


def test_equal_texts_on_two_pages_repeat_each_other():
    """The label of a page is in what the embedding saw, but it is no part of what the text says."""
    text = "The pump is oiled in May by the crew of the yard."
    nodes = [
        NodeWithScore(node=TextNode(id_=page, text=text, metadata={"page_label": page}), score=score)
        for page, score in (("7", 0.9), ("8", 0.8))
    ]
    assert ids(RedundancyPostprocessor().postprocess_nodes(nodes)) == ["7"]


def test_the_data_of_records_are_not_made_if_nobody_listens(monkeypatch):
    made, to_dict = [], StageRecord.to_dict

    def made_by(record):
        made.append(record)
        return to_dict(record)

    monkeypatch.setattr(StageRecord, "to_dict", made_by)
    nodes = scored(("The wheel turns.", 0.5), ("Rye is dark.", 0.4))
    RedundancyPostprocessor().postprocess_nodes(nodes)
    assert made == []
    with events_of_llamaindex() as seen:
        RedundancyPostprocessor().postprocess_nodes(nodes)
    assert len(made) == len(seen) == 1


def test_the_judge_of_relevance_is_the_application_s_and_sees_no_hidden_metadata(scripted_chat, events):
    nodes = scored(("The wheel turns.", 0.5), ("Rye is dark.", 0.4))
    for item in nodes:
        item.node.metadata, item.node.excluded_llm_metadata_keys = {"secret": "s3cret"}, ["secret"]
    llm = ScriptedLLM(wheels_are_relevant)
    part = RelevanceFilterPostprocessor(llm=llm, instructions="Only wheels matter.")
    assert ids(part.postprocess_nodes(nodes, query_str="q")) == ["n0"]
    assert llm.calls[0].text.startswith("Only wheels matter.")
    assert "s3cret" not in llm.calls[0].text
    assert part.to_dict()["instructions"] == "Only wheels matter."
    assert [event.class_name() for event in events] == ["PreciseCallEvent", "PreciseStageEvent"]
    Settings.llm = scripted_chat(reply=lambda prompt: "no idea")
    assert ids(RelevanceFilterPostprocessor().postprocess_nodes(nodes, query_str="q")) == ["n0", "n1"]


@pytest.mark.parametrize("kind", [Document, ImageDocument, TextNode])
def test_evidence_is_cut_from_nodes_of_all_kinds(kind):
    text = "The lamp is lit at dusk. The ferry sails at nine. Rye grows on the hill.\n\n" * 3
    node = kind(text=text, id_="d")
    found = EvidencePostprocessor(max_tokens=20).postprocess_nodes(
        [NodeWithScore(node=node, score=1.0)], query_str="When does the ferry sail?"
    )
    assert 0 < sum(len(item.get_content()) for item in found) < 100
    for item in found:
        assert text[item.node.start_char_idx : item.node.end_char_idx] == item.get_content()
        assert kind is TextNode or item.node.ref_doc_id == "d"


def test_the_place_of_a_text_that_was_exchanged_is_not_told():
    node = TextNode(text="The ferry sails at nine. Rye grows.", start_char_idx=40, end_char_idx=52, id_="n")
    (found,) = EvidencePostprocessor().postprocess_nodes(
        [NodeWithScore(node=node, score=1.0)], query_str="When does the ferry sail?"
    )
    facts = read_facts(found)
    assert facts["doc_id"] == "n"
    assert node.text[facts["start"] : facts["end"]] == found.get_content()


def test_evidence_has_the_source_the_offsets_and_the_keys_of_its_node():
    text = "The harbour has three piers. Ilse Brandt is the captain of the ferry to Velm."
    text += "\n\nRye bread is dark." * 9
    around = {NodeRelationship.SOURCE: "harbour", NodeRelationship.NEXT: "inn"}
    node = TextNode(
        text=text,
        metadata={"page": 1, "title": "The captain of the ferry: Ilse."},
        relationships={kind: RelatedNodeInfo(node_id=to) for kind, to in around.items()},
        start_char_idx=100,
        end_char_idx=100 + len(text),
        excluded_llm_metadata_keys=["page"],
    )
    part = EvidencePostprocessor(reranker="packaged", min_score=0.3, min_keep=1)
    found = part.postprocess_nodes([NodeWithScore(node=node)], query_str="Who is the captain of the ferry?")
    (best,) = [item.node for item in found if "Ilse Brandt" in item.node.text]
    assert text[best.start_char_idx - 100 : best.end_char_idx - 100] == best.text
    assert (best.ref_doc_id, best.metadata["page"]) == ("harbour", 1)
    assert set(best.excluded_llm_metadata_keys) >= {"page", "precise"}
    assert "page" not in best.get_content(MetadataMode.LLM)
    assert [read_facts(best)[end] for end in ("start", "end")] == [best.start_char_idx, best.end_char_idx]
    assert [*best.relationships] == [NodeRelationship.SOURCE]  # what is next is not the next node
    assert all(item.node.text in text for item in found)  # metadata is no evidence


def test_a_setting_that_is_changed_later_holds_and_a_wrong_one_changes_nothing():
    part = PreciseRerankPostprocessor(reranker=SCORED)
    part.top_n = 1
    assert ids(part.postprocess_nodes(scored(("a", 0.5), ("red", 0.4)), query_str="q")) == ["n1"]
    with pytest.raises(InputError, match="top_n must be greater than 0"):
        part.top_n = -1
    assert part.top_n == 1
    parser = SemanticSegmentationNodeParser(max_tokens=99)
    parser.chunk_size = 40
    assert (parser.max_tokens, parser.chunk_size) == (40, 40)
    copy = parser.model_copy(update={"max_tokens": 12})
    assert (copy.chunk_size, copy._segmenter.options.max_tokens, parser.max_tokens) == (12, 12, 40)
