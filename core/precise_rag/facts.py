"""The facts about a candidate, as JSON values in a framework object's metadata.

An adapter writes them when a candidate becomes a node or a document, and reads them back when that
object reaches a later stage. The entries, of which those without a value are left out:

    score, score_scale   the candidate's score and its scale
    scores               the scores of earlier stages, by name
    n_tokens             its length in tokens
    passage              [start, end] of the passage it belongs to
    reason               why the last selection kept it
"""

from collections.abc import Mapping
from typing import Any

from precise_rag.types import Candidate, ScoreScale, Span

FACTS_KEY = "precise_rag"
"""The metadata key under which an adapter keeps the facts."""


def write_facts(candidate: Candidate, reason: str = "") -> dict[str, Any]:
    """Return the facts about a candidate; `reason` says why a selection kept it."""
    facts: dict[str, Any] = {"score": candidate.score, "score_scale": candidate.score_scale}
    if candidate.scores:
        facts["scores"] = {name: float(score) for name, score in candidate.scores.items()}
    if candidate.n_tokens is not None:
        facts["n_tokens"] = int(candidate.n_tokens)
    if candidate.passage is not None:
        facts["passage"] = [int(offset) for offset in candidate.passage]
    if reason:
        facts["reason"] = reason
    return facts


def read_facts(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the facts in an object's metadata, or an empty mapping if it has none."""
    facts = metadata.get(FACTS_KEY)
    return facts if isinstance(facts, Mapping) else {}


def noted_scale(facts: Mapping[str, Any], score: object) -> ScoreScale | None:
    """Return the scale of `score`, or None if the facts are about another score.

    They are about another one after a foreign component, such as a fusion retriever, has rewritten it.
    """
    return facts.get("score_scale") if facts.get("score") == score else None


def noted_fields(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the `n_tokens`, `passage` and `scores` for a Candidate."""
    passage = facts.get("passage")
    return {
        "n_tokens": facts.get("n_tokens"),
        "passage": None if passage is None else Span(*passage),
        "scores": facts.get("scores", {}),
    }
