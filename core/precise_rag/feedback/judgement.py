"""Read a judge's reply: JSON, or the two lines of the paper's form, with or without prose around them."""

import math
import re
from collections.abc import Mapping
from typing import Any, Literal

from precise_rag.llm.json_objects import OBJECT, json_objects
from precise_rag.types import Judgement

Adjustment = Literal[-1, 0, 1]

_KEEP: Adjustment = 0
_NUMBER = r"([+\-−–]?\d++(?:\.\d++)?+)(?![A-Za-z\d])"
_IS = r"(?: ?\([^()\n]{1,20}\))?[\"'*_`\s:=\[(]*(?:is\s+|of\s+)?"
_SCORE = re.compile(rf"score{_IS}{_NUMBER}(?!\s*+[-–]\s*\d)", re.I)
_ADJUSTMENT = re.compile(
    rf"adjustment{_IS}(?:{_NUMBER}(?![ \t]*+,[ \t]*+[+\-−–]?\d)|(more|less|none|keep))", re.I
)
_SCORE_KEYS = ("score", "evaluation score", "rating")
_ADJUSTMENT_KEYS = ("adjustment", "context adjustment", "context")
_WORDS: Mapping[str, Adjustment] = {"more": 1, "less": -1, "none": 0, "keep": 0}


def parse_judgement(text: str) -> Judgement:
    """Return the judgement in `text`, with status "unparsed" if it has no score from 1 to 10.

    A JSON object counts with its own fields, not with what it quotes; lines count in a reply without one.
    Verdicts that differ are unparsed, too. A score is rounded down: 8.9 is 8. An adjustment that is missing
    or unreadable is 0.
    """
    verdicts = _verdicts(text)
    score, adjustment = verdicts.pop() if len(verdicts) == 1 else (None, _KEEP)
    if score is None:
        return Judgement(None, 0, "unparsed", text)
    return Judgement(score, adjustment, "parsed", text)


def _verdicts(text: str) -> set[tuple[int | None, Adjustment]]:
    """The scores and adjustments in a reply, in pairs; None for a score that is not from 1 to 10."""
    if OBJECT.search(text):
        verdicts: set[tuple[int | None, Adjustment]] = set()
        for fields in json_objects(text):
            named = [(str(key).lower().replace("_", " "), item) for key, item in fields.items()]
            told = dict(named)
            change = _adjustment(next((told[key] for key in _ADJUSTMENT_KEYS if key in told), None))
            scores = (item for key, item in named if key in _SCORE_KEYS and item is not None)
            verdicts |= {(_score(score), change) for score in scores}
        return verdicts
    changes = {_adjustment(number or word) for number, word in _ADJUSTMENT.findall(text)} or {_KEEP}
    return {(_score(score), change) for score in _SCORE.findall(text) for change in changes}


def _score(value: Any) -> int | None:
    number = _number(value)
    return math.floor(number) if number is not None and 1 <= number <= 10 else None


def _adjustment(value: Any) -> Adjustment:
    number = _number(value)
    if number is not None:
        return 1 if number > 0 else -1 if number < 0 else 0
    word = re.search("|".join(_WORDS), value.lower()) if isinstance(value, str) else None
    return _WORDS[word[0]] if word else 0


def _number(value: Any) -> float | None:
    """The number in 8, 8.5, "8", "8/10" or "less context (-1)"; None without a number."""
    if isinstance(value, str):
        match = re.search(_NUMBER, value)
        return float(match[1].translate(_MINUS)) if match else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return None if math.isnan(number) else number


_MINUS = str.maketrans("−–", "--")
