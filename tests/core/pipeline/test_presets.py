import json
import re
from collections.abc import Sequence
from typing import Any

import pytest

from precise_rag import PreciseRAG
from precise_rag.index import load_index
from precise_rag.testing import HashEncoder, ScriptedLLM
from precise_rag.trace import Trace
from precise_rag.types import Document, Message

GATE = "The harbour gate opens at six in the morning. The gate is made of oak."
FERRY = "A ferry ticket to the island costs two crowns. Children pay one crown."
DOCUMENTS = [
    Document("gate", GATE),
    Document("copy", GATE),
    Document("ferry", FERRY),
    Document("bees", "The master keeps bees. Honey is sold on Sundays."),
]
QUESTION = "When can I get in by the gate?"


def model(messages: Sequence[Message]) -> str:
    """A model that knows the gate: it rewrites, scores and answers."""
    system, user = (message.content for message in messages)
    if "rewrite a question" in system:
        return "harbour gate opens morning"
    if '{"scores"' in system:
        mark = re.search(r"mark (\w{16})", system)
        assert mark
        found = re.findall(rf"^{mark[1]} chunk (\S+)\n(.*?)\n{mark[1]} end", user, re.M | re.S)
        scores = [(key, 0.9 if "six" in text else 0.0) for key, text in found]
        items = [{"id": key, "base": s, "reflection": s, "critic": s} for key, s in scores]
        return json.dumps({"scores": items})
    return "At six in the morning [1]."


def chunkrag(llm: ScriptedLLM, **options: Any) -> PreciseRAG:
    return PreciseRAG.from_documents(DOCUMENTS, llm, preset="chunkrag", encoder=HashEncoder(), **options)


def test_the_whole_pipeline_in_its_order() -> None:
    llm = ScriptedLLM(model)
    rag = chunkrag(llm)
    trace = Trace(QUESTION)
    answer = rag.answer(QUESTION, trace=trace)
    assert answer.text == "At six in the morning [1]."
    assert [c.role for c in trace.calls] == ["rewrite", "relevance", "answer"]
    assert [s.name for s in trace.stages] == ["search", "rerank", "redundancy", "relevance", "selection"]
    assert trace.stages[0].settings["queries"] == 2
    (kept,) = answer.selection.kept
    assert kept.text in GATE
    assert "six" in kept.text
    dropped = {d.candidate.doc_id: d.reason for d in answer.selection.decisions if not d.kept}
    assert any(reason.startswith("repeats ") for reason in dropped.values())
    assert dropped["ferry"].startswith("relevance 0.00 is under")


def test_without_relevant_chunks_no_answer_is_written() -> None:
    def finds_nothing(messages: Sequence[Message]) -> str:
        return model(messages).replace("0.9", "0.0")

    answer = chunkrag(ScriptedLLM(finds_nothing)).answer(QUESTION)
    assert answer.selection.kept == ()
    assert answer.kind == "context"


def test_parts_can_be_replaced() -> None:
    llm = ScriptedLLM(model)
    rag = chunkrag(llm, relevance=None, rewriter=None)
    assert {c.doc_id for c in rag.retrieve(QUESTION).kept} >= {"ferry"}
    assert llm.calls == []


def test_a_saved_index_returns_the_same_passages(tmp_path) -> None:
    index = chunkrag(ScriptedLLM(model)).index
    index.save(tmp_path / "index")
    loaded = load_index(tmp_path / "index", HashEncoder())
    found, expected = loaded.search(QUESTION), index.search(QUESTION)
    assert [c.id for c in found] == [c.id for c in expected]
    assert [c.score for c in found] == pytest.approx([c.score for c in expected])
