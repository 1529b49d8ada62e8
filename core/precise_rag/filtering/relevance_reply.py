"""Reading a model's relevance scores: what is not surely a chunk's score is no score."""

import json
import math
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

from precise_rag.prompts.relevance import RELEVANCE_STAGES


class Relevance(NamedTuple):
    """The three scores of a chunk (ChunkRAG), each in [0, 1]."""

    base: float
    reflection: float
    critic: float

    @property
    def score(self) -> float:
        """Their mean. The paper does not say how the three become one."""
        return (self.base + self.reflection + self.critic) / 3.0


def read_scores(reply: str, ids: Collection[str]) -> dict[str, Relevance]:
    """The scores in `reply` by id, in whatever order and prose they come.

    Left out: items of other ids, items that lack a score or have one outside [0, 1], ids that are
    given different scores, and what a cut-off reply does not complete. Nothing is guessed from
    positions.
    """
    found: dict[str, Relevance] = {}
    contradicted: set[str] = set()
    for item in _objects(reply):
        key = item.get("id")
        scores = [_unit(item.get(stage)) for stage in RELEVANCE_STAGES]
        if not isinstance(key, str) or key not in ids or None in scores:
            continue
        relevance = Relevance(*(score for score in scores if score is not None))
        if found.setdefault(key, relevance) != relevance:
            contradicted.add(key)
    return {key: relevance for key, relevance in found.items() if key not in contradicted}


def read_score(reply: str) -> float | None:
    """The one score in [0, 1] that `reply` gives as JSON or as a bare number, else None."""
    given = {_unit(item["score"]) for item in _objects(reply) if "score" in item}
    if not given:
        given = {_unit(reply.strip())}
    return given.pop() if len(given) == 1 else None


def _objects(text: str) -> Iterator[Mapping[str, Any]]:
    """Every JSON object in `text`, those inside others too, also where the outer one is cut off."""
    decoder = json.JSONDecoder()
    at = text.find("{")
    while at >= 0:
        try:
            value, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            end = at + 1
        else:
            yield from _inside(value)
        at = text.find("{", end)


def _inside(value: Any) -> Iterator[Mapping[str, Any]]:
    """The objects in a JSON value, itself included."""
    waiting = [value]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            yield value
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)


def _unit(value: Any) -> float | None:
    """A number in [0, 1], written as one or in a string."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except ValueError:
        return None
    return number if math.isfinite(number) and 0.0 <= number <= 1.0 else None
