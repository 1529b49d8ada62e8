"""Read a judge's reply: JSON, or the two lines of the paper's form, with or without prose around them."""

import math
import re
from collections.abc import Mapping
from typing import Any, Literal

from precise_rag.llm.json_objects import OBJECT, json_objects
from precise_rag.types import Judgement

Adjustment = Literal[-1, 0, 1]
_NUMBER = r"([+\-−–]?\d++(?:\.\d++)?+)(?![A-Za-z\d])"
_IS = r"(?: ?\([^()\n]{1,20}\))?[\"'*_`\s:=\[(>]*(?:is\s+|of\s+)?"
_ONE_NUMBER = re.compile(rf"(?<!\d){_NUMBER}")
_SCORE = re.compile(
    rf"(?i)(?:(?:score|rating){_IS}|\b(?:rate|score|grade|give) (?:it|th(?:is|at|e))(?: \w{{1,20}}){{0,2}}? )"
    rf"({_NUMBER}(?!\s*+[-–]\s*\d| ?%|(?<=\b1) (?!of|out)\w{{2,3}} 10\b)(?:(?: ?/ ?| (?:out )?of )\d+)?)"
    rf"|(?<![\d/.])({_NUMBER}(?: ?/ ?| out of )10\b)(?!/)"
)
_NOT_TEN = re.compile(r"(?:/|\bof) ?(?!10\b)\d")
_ADJUSTMENT = re.compile(
    rf"adjustment{_IS}(?:{_NUMBER}(?![ \t]*+(?:,|or)[ \t]*+[+\-−–]?\d)|(more|less|none|keep))", re.I
)
_OUT_OF_TEN = re.compile(r"(?: ?/| of|(?<!\b1) \w{2,3}) ?10\b")
_SCORE_KEYS = ("score", "evaluation score", "rating")
_ADJUSTMENT_KEYS = ("adjustment", "context adjustment", "context")
_WORDS: Mapping[str, Adjustment] = {"more": 1, "less": -1, "none": 0, "keep": 0}


def parse_judgement(text: str) -> Judgement:
    """Return the judgement in `text`, with status "unparsed" if it has no score from 1 to 10.

    A JSON object counts with its own fields, not with what it quotes; lines beside objects count, too, unless
    one of them is malformed, which may quote them. Verdicts that differ are unparsed, and so is a score
    that is not out of ten. 8.9 is rounded down to 8. An adjustment that is missing or unreadable is 0.
    """
    objects, lines = json_objects(text)
    scores: set[int | None] = set()  # None: not from 1 to 10
    changes: set[Adjustment] = set()
    for fields in objects:
        named = [(str(key).lower().replace("_", " "), item) for key, item in fields.items()]
        found = {_score(item) for key, item in named if key in _SCORE_KEYS and item is not None}
        told = [item for wanted in _ADJUSTMENT_KEYS for key, item in named if key == wanted]
        scores |= found
        changes |= {_adjustment(told[0])} if found and told else set()
    if scores or not OBJECT.search(lines):
        scores |= {_score(named or alone) for named, _, alone, _ in _SCORE.findall(lines)}
        changes |= {_adjustment(number or word) for number, word in _ADJUSTMENT.findall(lines)}
    score = scores.pop() if len(scores) == 1 and len(changes) <= 1 else None
    if score is None:
        return Judgement(None, 0, "unparsed", text)
    return Judgement(score, changes.pop() if changes else 0, "parsed", text)


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
    """The number in 8, 8.5, "8/10" or "less context (-1)"; None for a text without one, or with several."""
    if isinstance(value, str):
        found = {*_ONE_NUMBER.findall(_OUT_OF_TEN.sub("", value))}
        is_out_of_ten = len(found) == 1 and not _NOT_TEN.search(value)
        return float(found.pop().translate(_MINUS)) if is_out_of_ten else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return None if math.isnan(number) else number


_MINUS = str.maketrans("−–", "--")
