import pickle

import numpy as np
import pytest
from llama_index.core.callbacks import CallbackManager, CBEventType, LlamaDebugHandler
from llama_index.core.postprocessor import SimilarityPostprocessor
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from llamaindex_precise import (
    GradientSelectionPostprocessor,
    PreciseRerankPostprocessor,
    RedundancyPostprocessor,
)
from precise_rag.facts import read_facts
from precise_rag.testing import HashEncoder
from support.alike import assert_alike

POSTPROCESSORS = (GradientSelectionPostprocessor, PreciseRerankPostprocessor, RedundancyPostprocessor)


class WordShare:
    """A reranker whose score is the share of the query's words that a text contains."""

    name = "word-share"
    is_calibrated = True
    score_scale = "probability"

    def score(self, query, candidates):
        words = set(query.lower().split())
        return np.array([len(words & set(c.text.lower().split())) / len(words) for c in candidates])


def scored(*pairs: tuple[str, float | None]) -> list[NodeWithScore]:
    return [
        NodeWithScore(node=TextNode(id_=f"n{i}", text=text, metadata={"page": i}), score=score)
        for i, (text, score) in enumerate(pairs)
    ]


def ids(nodes: list[NodeWithScore]) -> list[str]:
    return [item.node.node_id for item in nodes]


@pytest.mark.parametrize("cls", POSTPROCESSORS)
def test_conventions(cls):
    assert BaseNodePostprocessor.__name__ in [base.__name__ for base in cls.__mro__]
    postprocessor = cls.from_defaults()
    data = postprocessor.to_dict()
    assert data["class_name"] == cls.class_name() == cls.__name__
    assert cls.from_dict(data).to_dict() == data
    assert pickle.loads(pickle.dumps(postprocessor)).to_dict() == data
    assert postprocessor.postprocess_nodes([], query_str="q") == []
    postprocessor.callback_manager = CallbackManager()
    with pytest.raises(ValueError, match="both query_str and query_bundle"):
        postprocessor.postprocess_nodes([], query_bundle=QueryBundle("q"), query_str="q")


@pytest.mark.parametrize("cls", POSTPROCESSORS)
async def test_nodes_given_stay_as_they_were_and_async_does_the_same(cls):
    nodes = scored(("red fox", np.float32(0.5)), ("blue fox runs", 0.4), ("green sea", 0.1))
    before = [item.model_dump() for item in nodes]
    for item in nodes:
        item.node.metadata.setdefault("page", 0)
    result = cls().postprocess_nodes(nodes, query_str="red fox")
    for item in result:
        item.node.metadata["page"] = "changed"
        assert type(item.score) is float
        item.to_json()
    assert [item.model_dump() for item in nodes] == before
    again = await cls().apostprocess_nodes(nodes, query_str="red fox")
    assert_alike([(i.node.node_id, i.score) for i in again], [(i.node.node_id, i.score) for i in result])


def test_without_a_query_nothing_can_be_reranked():
    with pytest.raises(ValueError, match="needs the query"):
        GradientSelectionPostprocessor(reranker=WordShare()).postprocess_nodes(scored(("a", 0.8)))


def test_limits_count_tokens_with_the_application_s_tokenizer():
    nodes = scored(("one two three", 0.9), ("four five", 0.8), ("six", 0.7))
    for item in nodes:
        item.node.metadata.clear()
    kept = GradientSelectionPostprocessor(score_scale="probability", max_tokens=4).postprocess_nodes(nodes)
    assert ids(kept) == ["n0", "n2"]


def test_reranking_keeps_ids_order_and_the_former_score(events):
    debug = LlamaDebugHandler(print_trace_on_end=False)
    nodes = scored(("green sea", None), ("red fox", None), ("red sea", None))
    rerank = PreciseRerankPostprocessor(
        reranker=WordShare(), top_n=2, callback_manager=CallbackManager([debug])
    )
    result = rerank.postprocess_nodes(nodes, query_bundle=QueryBundle("red fox"))

    assert [(item.node.node_id, item.score) for item in result] == [("n1", 1.0), ("n2", 0.5)]
    start, end = (event for event in events if "ReRank" in event.class_name())
    assert (start.model_name, start.top_n, start.query.query_str) == ("word-share", 2, "red fox")
    assert len(start.nodes) == 3
    assert ids(end.nodes) == ["n1", "n2"]
    assert len(debug.get_event_pairs(CBEventType.RERANKING)) == 1
    with pytest.raises(ValueError, match="needs the query; pass query_str= or query_bundle="):
        rerank.postprocess_nodes(nodes)


def test_a_reranker_object_is_passed_again_when_settings_come_back():
    data = PreciseRerankPostprocessor(reranker=WordShare()).to_dict()
    assert data["reranker"] == {"name": "word-share"}
    with pytest.raises(ValueError, match="reranker object 'word-share'"):
        PreciseRerankPostprocessor.from_dict(data)
    again = PreciseRerankPostprocessor.from_dict(data, reranker=WordShare())
    assert again.to_dict() == data


def test_another_postprocessor_as_the_reranker():
    class Backwards(BaseNodePostprocessor):
        def _postprocess_nodes(self, nodes, query_bundle=None):
            return [NodeWithScore(node=item.node, score=i / 4) for i, item in enumerate(nodes)][::-1]

    nodes = scored(("a", 0.3), ("b", 0.2), ("c", 0.1))
    by_order = PreciseRerankPostprocessor(reranker=Backwards()).postprocess_nodes(nodes, query_str="q")
    assert [(item.node.node_id, item.score) for item in by_order] == [
        ("n2", 1.0),
        ("n1", 0.5),
        ("n0", pytest.approx(1 / 3)),
    ]
    rerank = PreciseRerankPostprocessor(reranker=Backwards(), score_scale="probability")
    by_score = rerank.postprocess_nodes(nodes, query_str="q")
    assert [item.score for item in by_score] == [0.5, 0.25, 0.0]
    assert read_facts(by_score[0].node)["score_scale"] == "probability"


def test_every_decision_is_announced(events):
    nodes = scored(("a", 0.9), ("b", 0.25))
    GradientSelectionPostprocessor(score_scale="probability", min_k=1).postprocess_nodes(nodes, query_str="q")
    (event,) = events
    assert event.class_name() == "PreciseStageEvent"
    assert event.record["stage"] == "GradientSelectionPostprocessor"
    assert [(c["id"], c["kept"], c["reason"]) for c in event.record["candidates"]] == [
        ("n0:0-1", True, "among the first 1 (min_k)"),
        ("n1:0-1", False, "sharp drop: 0.25 is not above 0.3 × 0.9"),
    ]


def test_redundancy_by_meaning_names_its_encoder():
    postprocessor = RedundancyPostprocessor(embed_model=HashEncoder())
    assert postprocessor.to_dict()["encoder_name"] == "hash-256"


def test_stock_postprocessors_work_behind_ours():
    nodes = scored(("red fox", 0.1), ("red sea", 0.9))
    kept = GradientSelectionPostprocessor(reranker=WordShare()).postprocess_nodes(nodes, query_str="red fox")
    assert ids(SimilarityPostprocessor(similarity_cutoff=0.9).postprocess_nodes(kept)) == ["n0"]


def test_equal_texts_on_two_pages_repeat_each_other():
    """The label of a page is in what the embedding saw, but it is no part of what the text says."""
    text = "The pump is oiled in May by the crew of the yard."
    nodes = [
        NodeWithScore(node=TextNode(id_=page, text=text, metadata={"page_label": page}), score=score)
        for page, score in (("7", 0.9), ("8", 0.8))
    ]
    kept = RedundancyPostprocessor().postprocess_nodes(nodes)
    assert [item.node.node_id for item in kept] == ["7"]
