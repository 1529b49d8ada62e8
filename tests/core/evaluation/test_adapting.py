"""A reranker is adapted by questions, and left as it is where they show no gain."""

from collections.abc import Sequence

import numpy as np
import pytest

from precise_rag import Document, PreciseRAG
from precise_rag.errors import InputError
from precise_rag.evaluation import Evidence, Question, adapting
from precise_rag.evaluation.adapting import adapt, holds_evidence
from precise_rag.evaluation.own_questions import own_questions
from precise_rag.index import HybridIndex
from precise_rag.rerank import AdaptedReranker, rerank
from precise_rag.testing import HashEncoder
from precise_rag.types import Candidate, FloatArray, ScoreScale

_NAMES = [
    "lantern",
    "harbour",
    "orchard",
    "quarry",
    "windmill",
    "chapel",
    "granary",
    "tannery",
    "smithy",
    "brewery",
    "bakery",
    "foundry",
    "stable",
    "library",
    "observatory",
    "nursery",
    "cannery",
    "sawmill",
    "dairy",
    "forge",
    "pottery",
    "vineyard",
    "aviary",
    "kennel",
]


def documents() -> list[Document]:
    return [
        Document(
            name,
            f"The {name} opens at {n} in the morning. The {name} was built by a guild whose members came "
            f"from both sides of the river. A book was kept of what the {name} cost in timber and bread.",
        )
        for n, name in enumerate(_NAMES)
    ]


def questions() -> list[Question]:
    spans = [(name, len(f"The {name} opens at {n} in the morning.")) for n, name in enumerate(_NAMES)]
    return [Question(name, f"When does the {name} open?", (Evidence(name, 0, end),)) for name, end in spans]


class Right:
    """A reranker that cannot be better: what answers is certain, nothing else is probable."""

    name, is_calibrated = "right", True
    score_scale: ScoreScale = "probability"

    def score(self, query: str, candidates: Sequence[Candidate]) -> FloatArray:
        name = query.removeprefix("When does the ").removesuffix(" open?")
        return np.array(
            [0.9999 if f"The {name} opens" in c.text else 0.0001 for c in candidates], dtype=np.float32
        )


class Wrong(Right):
    """A reranker that is sure, and wrong: what answers is least probable."""

    name = "wrong"

    def score(self, query: str, candidates: Sequence[Candidate]) -> FloatArray:
        return 1 - super().score(query, candidates)


@pytest.fixture(scope="module")
def index() -> HybridIndex:
    return HybridIndex.build(documents(), HashEncoder())


def test_what_the_search_knows_better_is_learned(index: HybridIndex) -> None:
    found = adapt(index, questions(), reranker=Wrong())
    assert found.adaptation is not None
    assert found.loss.low > 0
    assert found.after > found.before
    assert found.says.startswith("adapted the ")
    assert f"on {len(_NAMES)} questions, each held out" in found.says
    assert (found.adaptation.reranker, found.adaptation.encoder) == ("wrong", HashEncoder().name)
    rag = PreciseRAG(index, reranker=AdaptedReranker(Wrong(), found.adaptation))
    best = rag.retrieve("When does the quarry open?").decisions[0].candidate
    assert best.text == "The quarry opens at 3 in the morning."


def test_an_adapted_reranker_is_adapted_anew(index: HybridIndex) -> None:
    first = adapt(index, questions(), reranker=Wrong()).adaptation
    assert first is not None
    again = adapt(index, questions(), reranker=AdaptedReranker(Wrong(), first)).adaptation
    assert again == first


class ShortTexts(Wrong):
    """One that scores long texts by their sentences."""

    longest_text = 12


def test_long_candidates_are_judged_whole_as_a_pipeline_scores_them() -> None:
    listener = adapting._Listener(ShortTexts(), ("base",))
    given = [Candidate(one.id, 0, len(one.text), one.text, 1.0, "rank") for one in documents()]
    rerank("When does the quarry open?", given, listener)
    candidates, columns = listener.heard
    assert candidates == given
    assert len(columns["base"]) == len(given)


def test_nothing_is_adapted_without_a_gain(index: HybridIndex) -> None:
    found = adapt(index, questions(), reranker=Right())
    assert found.adaptation is None
    assert found.says.startswith("kept as it is, nothing is surely gained: log loss ")
    assert found.before == found.after == 1.0


def test_too_few_questions_are_refused(index: HybridIndex) -> None:
    few = questions()[:19]
    without = [Question("more", "What else?")]
    with pytest.raises(
        InputError, match=r"20 questions with evidence are needed.*got 19 with evidence of 20"
    ):
        adapt(index, few + without, reranker=Wrong())
    assert index.adaptation is None


def test_evidence_is_held_by_half_of_the_shorter() -> None:
    question = Question("q", "?", (Evidence("a", 10, 30),))

    def piece(start: int, end: int, doc_id: str = "a") -> Candidate:
        return Candidate(doc_id, start, end, "x" * (end - start), 1.0, "rank")

    assert holds_evidence(piece(20, 60), question)
    assert holds_evidence(piece(0, 100), question)
    assert not holds_evidence(piece(21, 61), question)
    assert not holds_evidence(piece(10, 30, "b"), question)
    assert not holds_evidence(piece(30, 40), question)


def test_documents_ask_by_their_headings() -> None:
    text = (
        "# Manual of the mill\n\nThis is about a mill.\n\n## Grinding wheat slowly\n\n"
        + "The stones turn once a minute, so that the flour stays cool and keeps its taste for months.\n\n"
        + "## Overview of parts\n\n"
        + "A mill has two stones, a hopper above them, a chute below them, and a wheel that drives them.\n\n"
        + "## Sails\n\nShort.\n"
    )
    made = own_questions([Document("mill", text)])
    (question,) = made.questions
    (document,) = made.documents
    (evidence,) = question.evidence
    assert question.text == "Grinding wheat slowly"
    assert "Grinding wheat slowly" not in document.text
    assert document.text.count("##") == 2
    assert document.text[evidence.start : evidence.end].startswith("The stones turn once a minute")
    assert own_questions([Document("mill", text)], most=0).questions == []
