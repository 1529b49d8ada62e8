"""What kind of question a query is, by its question words."""

import re

QUESTION_KINDS = {
    "asks_who": r"\b(who|whom|whose)\b",
    "asks_when": r"\b(when|(what|which) (year|date|day|time|century)|how (old|long))\b",
    "asks_where": r"\bwhere\b",
    "asks_number": r"\bhow (many|much|far|often|large|tall|big|high)\b",
    "asks_how": r"\bhow\b",
    "asks_why": r"\b(why|reasons?|causes?)\b",
    "asks_what": r"\bwhat\b",
    "asks_which": r"\bwhich\b",
}
"""Kinds of question by their question words; a question may be of several kinds, or of none."""

_KINDS = {name: re.compile(pattern) for name, pattern in QUESTION_KINDS.items()}


def question_kinds(query: str) -> list[float]:
    """Return 1 or 0 for each kind in `QUESTION_KINDS`: whether the query is of that kind."""
    lower = query.lower()
    return [float(bool(pattern.search(lower))) for pattern in _KINDS.values()]
