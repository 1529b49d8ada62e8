"""What an app sends for a question, line by line, and the parts that both frameworks share."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from benchmarks.sent import Piece
from precise_rag.evaluation.datasets import Question
from precise_rag.rerank import load_reranker
from precise_rag.testing import ScriptedLLM
from precise_rag.tokens import estimate_prompt_tokens
from precise_rag.types import Candidate, FloatArray, Message

N_FOUND = 10
"""Pieces that a store returns to a part which cuts them down."""


Ask = Callable[[str], list[Piece]]


class Line(NamedTuple):
    """One line of an app.

    chunks: what the store holds; "documents" if the line has an index of its own.
    code: the line. is_stock: whether it is the framework's own.
    """

    chunks: str
    code: str
    ask: Ask
    is_stock: bool = False


class App(NamedTuple):
    """An app of one framework. nearest: what its stock store returns, by question and number; lines:
    the stock app first."""

    name: str
    nearest: Callable[[str, int], list[Piece]]
    lines: Sequence[Line]


class RememberingReranker:
    """The default reranker, which scores the same texts for the same question only once."""

    def __init__(self) -> None:
        self._reranker = load_reranker("default")
        self._known: dict[tuple[str, ...], FloatArray] = {}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._reranker, name)

    def score(self, query: str, candidates: Sequence[Candidate]) -> FloatArray:
        key = (query, *(f"{c.id} {c.text}" for c in candidates))
        if key not in self._known:
            self._known[key] = self._reranker.score(query, candidates)
        return self._known[key].copy()


class RightModel:
    """A model that is always right about what is relevant: it is told the evidence of the question.

    llm: the model. asked: estimated tokens of all prompts since `about` was called.
    """

    def __init__(self) -> None:
        self.llm = ScriptedLLM(self._reply, name="right")
        self.evidence: tuple[str, ...] = ()
        self.asked = 0

    def about(self, question: Question, texts: Mapping[str, str]) -> None:
        """Tell the evidence of the next question. texts: of the documents."""
        self.evidence = tuple(" ".join(texts[e.doc_id][e.start : e.end].split()) for e in question.evidence)
        self.asked = 0
        self.llm.calls.clear()

    def is_relevant(self, text: str) -> bool:
        """Whether the text holds half of some evidence: its first or its last half."""
        plain = " ".join(text.split())
        halves = (half for e in self.evidence for half in (e[: len(e) // 2 + 1], e[len(e) // 2 :]))
        return any(half in plain for half in halves)

    def _reply(self, messages: Sequence[Message]) -> str:
        self.asked += estimate_prompt_tokens(messages)
        _, *parts = re.split(r"^\w{16} chunk (\S+)$", messages[-1].content, flags=re.MULTILINE)
        scores = {
            key: 0.9 if self.is_relevant(chunk) else 0.0
            for key, chunk in zip(parts[::2], parts[1::2], strict=True)
        }
        parts_of = ("base", "reflection", "critic")
        items = [{"id": key} | dict.fromkeys(parts_of, score) for key, score in scores.items()]
        return json.dumps({"scores": items}) if items else "An answer."
