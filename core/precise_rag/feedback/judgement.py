"""What a judge said, read tolerantly: JSON, the paper's two lines, or prose around either."""

import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from precise_rag.types import Judgement

_NUMBER = r"([+\-−–]?\d+(?:\.\d+)?)"
_IS = r"[\"'*_`\s:=\[(]*(?:is\s+|of\s+)?"
_SCORE = re.compile(rf"score{_IS}{_NUMBER}(?!\d*\s*[-–]\s*\d)", re.I)
_ADJUSTMENT = re.compile(
    rf"adjustment{_IS}(?:{_NUMBER}(?![ \t]*,[ \t]*[+\-−–]?\d)|(more|less|none|keep))", re.I
)
_SCORE_KEYS = ("score", "evaluation score", "rating")
_ADJUSTMENT_KEYS = ("adjustment", "context adjustment", "context")
_WORDS: Mapping[str, Literal[-1, 0, 1]] = {"more": 1, "less": -1, "none": 0, "keep": 0}


def parse_judgement(text: str) -> Judgement:
    """The judgement in `text`; status "unparsed" where no score from 1 to 10 can be found.

    Where several are stated, the last one counts, since models think before they conclude. A score
    of 8.9 is 8: only a full 9 is a 9. An adjustment that is missing or unreadable is 0.
    """
    for found in (*_json_objects(text), _from_lines(text)):
        score = _score(_first(found, _SCORE_KEYS))
        if score is not None:
            return Judgement(score, _adjustment(_first(found, _ADJUSTMENT_KEYS)), "parsed", text)
    return Judgement(None, 0, "unparsed", text)


def _json_objects(text: str) -> Iterator[Mapping[str, Any]]:
    """The JSON objects in `text`, last first, keys in lower case with spaces."""
    decoder = json.JSONDecoder()
    for match in reversed(list(re.finditer(r"\{", text))):
        try:
            value, _ = decoder.raw_decode(text, match.start())
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            yield {str(key).lower().replace("_", " "): item for key, item in value.items()}


def _from_lines(text: str) -> Mapping[str, Any]:
    scores = _SCORE.findall(text)
    adjustments = _ADJUSTMENT.findall(text)
    found: dict[str, Any] = {}
    if scores:
        found["score"] = scores[-1]
    if adjustments:
        number, word = adjustments[-1]
        found["adjustment"] = number or word
    return found


def _first(found: Mapping[str, Any], keys: tuple[str, ...]) -> Any:
    return next((found[key] for key in keys if key in found), None)


def _score(value: Any) -> int | None:
    number = _number(value)
    if number is None or not 1 <= number <= 10:
        return None
    return math.floor(number)


def _adjustment(value: Any) -> Literal[-1, 0, 1]:
    number = _number(value)
    if number is not None:
        return 1 if number > 0 else -1 if number < 0 else 0
    word = re.search("|".join(_WORDS), value.lower()) if isinstance(value, str) else None
    return _WORDS[word[0]] if word else 0


def _number(value: Any) -> float | None:
    """The number in 8, 8.5, "8", "8/10" or "less context (-1)"; None where there is none."""
    if isinstance(value, str):
        found = re.search(_NUMBER, value)
        return float(found[1].translate(_MINUS)) if found else None
    if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):
        return None
    return float(value)


_MINUS = str.maketrans("−–", "--")
