import json
import re

import pytest
from llama_index.core import Settings
from llama_index.core.schema import NodeWithScore, TextNode

from llamaindex_precise import RelevanceFilterPostprocessor
from precise_rag.testing import ScriptedLLM

QUESTION = "When does the ferry leave?"


def judge(prompt: str) -> str:
    """Reply with the score 0.9 for each chunk in the prompt that names the ferry, and 0.1 for the rest."""
    chunks = re.findall(r"^\w+ chunk (\S+)\n(.*?)\n\w+ end of chunk", prompt, re.M | re.S)
    scores = [(key, 0.9 if "ferry" in text else 0.1) for key, text in chunks]
    return json.dumps({"scores": [{"id": k, "base": s, "reflection": s, "critic": s} for k, s in scores]})


def llm() -> ScriptedLLM:
    return ScriptedLLM(lambda messages: judge("\n\n".join(message.content for message in messages)))


@pytest.fixture
def nodes() -> list[NodeWithScore]:
    texts = ["The ferry leaves at nine.", "The mill grinds rye.", "A ferry ticket costs two crowns."]
    return [
        NodeWithScore(
            node=TextNode(id_=f"n{i}", text=text, metadata={"secret": "s3cret"}), score=0.5 - i / 10
        )
        for i, text in enumerate(texts)
    ]


def hide(nodes: list[NodeWithScore]) -> list[NodeWithScore]:
    for item in nodes:
        item.node.excluded_embed_metadata_keys = ["secret"]
    return nodes


def test_hidden_metadata_is_not_sent(nodes):
    model = llm()
    RelevanceFilterPostprocessor(llm=model).postprocess_nodes(hide(nodes), query_str=QUESTION)
    assert "s3cret" not in model.calls[0].text


def test_the_instructions_can_be_replaced(nodes):
    model = llm()
    postprocessor = RelevanceFilterPostprocessor(llm=model, instructions="Only ferries matter.")
    postprocessor.postprocess_nodes(nodes, query_str=QUESTION)
    assert model.calls[0].text.startswith("Only ferries matter.")
    assert postprocessor.to_dict()["instructions"] == "Only ferries matter."


def test_the_application_s_llm_is_the_default(nodes, scripted_chat):
    Settings.llm = scripted_chat(reply=judge)
    kept = RelevanceFilterPostprocessor().postprocess_nodes(nodes, query_str=QUESTION)
    assert [item.node.node_id for item in kept] == ["n0", "n2"]


def test_calls_and_decisions_are_announced(nodes, events):
    RelevanceFilterPostprocessor(llm=llm()).postprocess_nodes(nodes, query_str=QUESTION)
    assert [event.class_name() for event in events] == ["PreciseCallEvent", "PreciseStageEvent"]
    assert [c["kept"] for c in events[1].record["candidates"]] == [True, False, True]


def test_without_a_query_nothing_can_be_judged(nodes):
    with pytest.raises(ValueError, match="needs the query"):
        RelevanceFilterPostprocessor(llm=llm()).postprocess_nodes(nodes)
