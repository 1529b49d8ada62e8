import json
from collections.abc import Callable, Sequence
from itertools import count
from pydoc_data.topics import topics
from typing import Any

import numpy as np
import pytest

from precise_rag import PreciseRAG
from precise_rag.errors import InputError
from precise_rag.prompts import NOT_IN_PASSAGES
from precise_rag.rerank import LogitReranker
from precise_rag.testing import HashEncoder, ScriptedLLM
from precise_rag.trace import Trace
from precise_rag.types import Candidate, Document, Message, ScoreScale
from support.documents import read_cases
from support.scored import Scored
from support.velm import shown_texts

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
    if "Rewrite the question" in messages[0].content:
        return "harbour gate opens morning"
    if "relevant" in messages[0].content:
        scores = [(key, 0.9 if "six" in text else 0.0) for key, text in shown_texts(messages).items()]
        items = [{"id": key, "base": s, "reflection": s, "critic": s} for key, s in scores]
        return json.dumps({"scores": items})
    return "At six in the morning [1]."


def pieces(n: int) -> list[Candidate]:
    return [Candidate("d", row, row + 1, f"x{row}", 0.0, "rank") for row in range(n)]


def by_place(scores: Sequence[float], scale: ScoreScale) -> Scored:
    """A reranker that gives `pieces` these scores."""
    return Scored(lambda text: scores[int(text[1:])], scale)


def test_chunkrag_searches_for_the_rewritten_question_filters_and_reranks_what_is_left() -> None:
    """Section 3: chunks are sorted by similarity to the rewritten question, filtered, then reranked."""

    def chunkrag(reply: Callable[[Sequence[Message]], str]) -> PreciseRAG:
        return PreciseRAG.from_documents(
            pages, ScriptedLLM(reply), preset="chunkrag", encoder=HashEncoder(), reranker=backwards
        )

    places = count()
    backwards = Scored(lambda text: next(places), "rank")
    pages = [*DOCUMENTS, Document("late", "Boats leave at six, when it is light.")]
    rag, trace = chunkrag(model), Trace(QUESTION)
    answer = rag.answer(QUESTION, trace=trace)
    assert answer.text == "At six in the morning [1]."
    assert [c.role for c in trace.calls] == ["rewrite", "relevance", "answer"]
    stages = {stage.name: stage.selection for stage in trace.stages}
    assert list(stages) == ["search", "redundancy", "relevance", "rerank", "selection"]
    assert trace.stages[0].settings["queries"] == 1
    expected = rag.index.search("harbour gate opens morning", rag.path.n_candidates)
    assert [c.text for c in stages["search"].kept][:3] == [c.text for c in expected][:3]
    read = [c.text for c in backwards.read]
    assert read == [c.text for c in stages["relevance"].kept]
    kept = answer.selection.kept
    assert [c.text for c in kept] == read[::-1]
    assert len(kept) == 2
    assert all("six" in c.text for c in kept)
    dropped = {d.candidate.doc_id: d.reason for d in answer.selection.decisions if not d.kept}
    assert any(reason.startswith("repeats ") for reason in dropped.values())
    assert dropped["ferry"].startswith("relevance 0.00 is under")
    nothing = chunkrag(lambda messages: model(messages).replace("0.9", "0.0")).answer(QUESTION)
    assert (nothing.selection.kept, nothing.text, nothing.kind) == ((), NOT_IN_PASSAGES, "context")
    assert nothing.note.startswith("no passage was kept: relevance 0.00 is under")
    assert [call.role for call in nothing.trace.calls] == ["rewrite", "relevance"]
    scores = [1.0, 1.0, 1.0, 0.7, 0.3]
    assert rag.path.relevance.settings.threshold.of(scores).value == pytest.approx(0.8), "no cap of ours"


@pytest.mark.parametrize(("preset", "index", "stages"), read_cases("commands.json", "presets"))
def test_each_preset_has_its_index_and_its_stages(preset: Any, index: str, stages: list[str]) -> None:
    rag = PreciseRAG.from_documents(
        [*DOCUMENTS, Document("rule", "***")], preset=preset, encoder=HashEncoder()
    )
    trace = Trace(QUESTION)
    selection = rag.retrieve(QUESTION, trace=trace)
    assert type(rag.index).__name__ == index
    assert [stage.name for stage in trace.stages] == stages
    assert selection.kept
    assert trace.settings["preset"] == preset


@pytest.mark.parametrize(("preset", "message"), read_cases("commands.json", "refused presets"))
def test_an_unknown_preset_and_one_without_its_model_are_refused(preset: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        PreciseRAG.from_documents(DOCUMENTS, preset=preset, encoder=HashEncoder())


def test_sage_selects_on_raw_logits_as_its_figures_do() -> None:
    """Fig. 8 is cut between 4.416 and 1.304; both are logits."""
    logits = [13.79, 13.58, 11.91, 11.55, 10.94, 7.815, 7.665, 5.490, 4.416, 1.304, 0.8, 0.255, -0.198]
    rag = PreciseRAG(None, preset="sage", reranker=by_place(logits, "logit"))
    selection = rag.retrieve("Which technology?", candidates=pieces(len(logits)))
    assert [c.score for c in selection.kept] == pytest.approx(logits[:9])
    ranked = [decision.candidate for decision in selection.decisions]
    assert len(rag.path.selector.select(ranked, step=-6).kept) == 9, "feedback moves min_k alone"


@pytest.mark.parametrize(("probabilities", "n_kept"), read_cases("selection.json", "over chance"))
def test_calibrated_scores_are_compared_over_chance(probabilities: list[float], n_kept: int) -> None:
    """Of 15: smooth and over 1 in 15; some over it; all below it."""
    rag = PreciseRAG(None, preset="sage", reranker=LogitReranker(by_place(probabilities, "probability")))
    selection = rag.retrieve("Which was not built?", candidates=pieces(15))
    assert len(selection.kept) == n_kept
    best = np.log(14 * probabilities[0] / (1 - probabilities[0]))
    assert selection.kept[0].score == pytest.approx(best, abs=1e-5)
    assert rag.path.n_candidates == 15


@pytest.mark.slow
def test_sage_cuts_fine_segments_and_sends_a_few_on_logits() -> None:
    """Section IV-E: segments within 400 tokens. Figs. 8 and 9: logits."""
    pages = [Document(page, topics[page]) for page in ("try", "class", "function")]
    rag = PreciseRAG.from_documents(pages, preset="sage", encoder=HashEncoder())
    found = rag.index.search(QUESTION, 500)
    assert len({c.id for c in found}) == len(found) > 20
    assert max(c.n_tokens or 0 for c in found) <= 400
    assert 30 < np.mean([c.n_tokens or 0 for c in found]) < 250
    trace = Trace(QUESTION)
    selection = rag.retrieve("When is the else clause of a try statement executed?", trace=trace)
    ranked = {stage.name: stage.selection for stage in trace.stages}["rerank"]
    assert {c.score_scale for c in ranked.kept} == {"logit"}
    assert 7 <= len(selection.kept) < len(ranked.kept)
