"""Three documents, one of them blank, and questions on them, for the core and both adapters."""

import json
import re
from collections.abc import Sequence
from typing import Any

import pytest

from precise_rag.facts import candidate_facts, piece_id, read_facts
from precise_rag.index import HybridIndex
from precise_rag.testing import HashEncoder
from precise_rag.types import Document, Excerpt, Message, Selection
from support.alike import assert_alike
from support.documents import read_cases

TEXTS = read_cases("documents.json", "of Velm")
QUESTIONS = ["Who carved the wheel of the mill?", "When does the ferry to Velm leave?", "red lantern"]
TOP_K = 8
CORE = [Document(name, text, {"title": name}) for name, text in TEXTS.items()]


def documents(framework: Any, *, pieces: bool = False) -> list[Any]:
    """The documents in a framework; with pieces, as a retriever would return them whole."""
    make = framework.piece if pieces else framework.document
    return [make(text, name, title=name) for name, text in TEXTS.items()]


PLAIN: dict[str, Any] = {
    **{"reranker": None, "redundancy": None, "evidence": None, "selector": None},
    **{"order": "score", "n_candidates": TOP_K},
}
"""Options of a pipeline that only searches."""


def retriever(framework: Any) -> Any:
    """A retriever of a framework that returns what an index of the documents finds, best first."""
    return framework.retriever.from_index(HybridIndex.build(CORE, HashEncoder()), **PLAIN)


def shown_texts(messages: Sequence[Message]) -> dict[str, str]:
    """The numbered texts of a prompt by the words above them, read as a careful model reads them."""
    user = messages[1].content
    mark = re.split(r"\d| ", user)[0]
    return dict(re.findall(rf"^({mark}\d+)\n(.*?)\s*(?=^{mark}|\Z)", user, re.S | re.M))


def wheels_are_relevant(messages: Sequence[Message]) -> str:
    """A model's reply: high scores for chunks that name a wheel; a question in other words."""
    if " rules\n" not in messages[1].content:
        return "the wheel of the mill"
    scores = [(key, 0.9 if "wheel" in text else 0.2) for key, text in shown_texts(messages).items()]
    return json.dumps({"scores": [{"id": k, "base": s, "reflection": s, "critic": s} for k, s in scores]})


def verdict(score: int, adjustment: int = 0) -> str:
    """A judge's reply."""
    return json.dumps({"reason": "because", "score": score, "adjustment": adjustment})


def assert_same_decisions(selection: Selection, expected: Selection) -> None:
    assert [(d.rank, d.candidate.id, d.kept, d.reason) for d in selection.decisions] == [
        (d.rank, d.candidate.id, d.kept, d.reason) for d in expected.decisions
    ]
    assert [d.candidate.score for d in selection.decisions] == pytest.approx(
        [d.candidate.score for d in expected.decisions], abs=1e-6
    )


def assert_same_results(framework: Any, pieces: list[Any], expected: Selection) -> None:
    """The kept candidates, in order, with their scores and reasons."""
    kept = [(d.candidate, d.reason) for d in expected.decisions if d.kept]
    assert [framework.id(p) for p in pieces] == [piece_id(c.doc_id, c.start, c.end) for c, _ in kept]
    assert [framework.score(p) for p in pieces] == pytest.approx([c.score for c, _ in kept], abs=1e-6)
    assert [read_facts(p)["reason"] for p in pieces] == [reason for _, reason in kept]
    for piece, (candidate, _) in zip(pieces, kept, strict=True):
        assert read_facts(piece).get("scores", {}) == pytest.approx(dict(candidate.scores), abs=1e-6)


def assert_same_excerpts(framework: Any, pieces: list[Any], excerpts: Sequence[Excerpt]) -> None:
    """The excerpts with the facts about them and each of their sentences."""
    assert [framework.id(p) for p in pieces] == [piece_id(e.doc_id, e.start, e.end) for e in excerpts]
    assert [framework.text(p) for p in pieces] == [TEXTS[e.doc_id][e.start : e.end] for e in excerpts]
    assert [framework.score(p) for p in pieces] == pytest.approx([e.score for e in excerpts], abs=1e-6)
    assert_alike([read_facts(p) for p in pieces], [candidate_facts(e, e.reason) for e in excerpts])
