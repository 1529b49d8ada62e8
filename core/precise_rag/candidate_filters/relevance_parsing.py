"""Read relevance scores from a model's reply. A score that is not certain is left out, never guessed."""

import math
from collections.abc import Collection
from typing import Any, NamedTuple

from precise_rag.llm.json_objects import json_objects
from precise_rag.prompts.relevance import RELEVANCE_STAGES


class Relevance(NamedTuple):
    """The three scores of a chunk (ChunkRAG, section 3), each in [0, 1]."""

    base: float
    reflection: float
    critic: float

    @property
    def score(self) -> float:
        """Their mean. The paper does not say how the three are combined."""
        return (self.base + self.reflection + self.critic) / 3.0


def parse_scores(reply: str, ids: Collection[str]) -> dict[str, Relevance]:
    """Read the scores of several chunks, whatever their order and the prose around them.

    reply: the model's text, with a JSON object for each chunk.
    ids: the ids that were shown to the model.
    Returns the scores by id. Left out are ids that are not in `ids`, and those that a cut-off reply does not
    complete. So are ids that lack a score, have one outside [0, 1], or have two different sets of scores.
    """
    by_id: dict[str, Relevance] = {}
    contradicted: set[str] = set()
    for item in json_objects(reply):
        key = item.get("id")
        scores = [_unit_number(item.get(stage)) for stage in RELEVANCE_STAGES]
        if not isinstance(key, str) or key not in ids or None in scores:
            continue
        relevance = Relevance(*(score for score in scores if score is not None))
        if by_id.setdefault(key, relevance) != relevance:
            contradicted.add(key)
    return {key: relevance for key, relevance in by_id.items() if key not in contradicted}


def parse_score(reply: str) -> float | None:
    """Read a single score in [0, 1], given as JSON or as a bare number; None without one."""
    given = {_unit_number(item["score"]) for item in json_objects(reply) if "score" in item}
    if not given:
        given = {_unit_number(reply.strip())}
    return given.pop() if len(given) == 1 else None


def _unit_number(value: Any) -> float | None:
    """`value` as a number in [0, 1]; it may be a string. None if it is something else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) and 0.0 <= number <= 1.0 else None
