"""A trace as one HTML page.

The page is made from the plain record of `Trace.to_dict`, so a stored record can still become a page. A
record without texts becomes a page without texts.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from math import isfinite
from typing import Any

from precise_rag.errors import InputError
from precise_rag.viz.charts import ScoredRank, score_curve
from precise_rag.viz.page import Html, folded, html_page, soft, table, wide

_CUT_OFF = {"length": "cut off by the length limit", "content_filter": "cut off by the content filter"}
_MOST_CHARACTERS, _MOST_ITEMS = 4_000_000, 20_000
"""Of all texts and of all lists of a record that a page shows."""
_LONGEST_TEXT, _LONGEST_LIST = 50_000, 1_000
"""The same for one text and for one list."""
_SHORT_TEXT, _LONGEST_NAME = 20, 200
"""A text that is never cut, such as a number, and the longest name of a setting."""


class _Room:
    """Cuts a record to the room of a page, and counts the parts that it leaves out."""

    def __init__(self) -> None:
        self._characters, self._items = _MOST_CHARACTERS, _MOST_ITEMS
        self._cut_characters = self._cut_items = 0

    def cut(self, value: Any) -> Any:
        """Return a copy with shorter texts and lists."""
        if isinstance(value, str):
            if len(value) <= _SHORT_TEXT:
                return value
            kept = value[: min(_LONGEST_TEXT, self._characters)]
            self._characters -= len(kept)
            self._cut_characters += len(value) - len(kept)
            return kept if len(kept) == len(value) else f"{kept}…"
        if isinstance(value, Mapping):
            names = list(value)[:_LONGEST_LIST]
            self._cut_items += len(value) - len(names)
            return {str(name)[:_LONGEST_NAME]: self.cut(value[name]) for name in names}
        if isinstance(value, list | tuple):
            shown = value[: min(_LONGEST_LIST, self._items)]
            self._items -= len(shown)
            self._cut_items += len(value) - len(shown)
            return [self.cut(item) for item in shown]
        return value

    @property
    def note(self) -> str:
        """A note about the parts that were left out; empty if none were."""
        if not self._cut_characters + self._cut_items:
            return ""
        return (
            f"This page leaves out {self._cut_items:,} entries of lists and {self._cut_characters:,} "
            "characters of texts; the JSON of the trace has them."
        )


def trace_page(record: Mapping[str, Any]) -> str:
    """Return the page of a record made by `Trace.to_dict`. Raises InputError for any other record.

    Long texts and lists are cut, and the page says how much was left out.
    """
    try:
        return _page(record)
    except (AttributeError, IndexError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise InputError(
            f"the record must be one that Trace.to_dict made ({type(error).__name__}: {error})"
        ) from error


def _page(whole: Mapping[str, Any]) -> str:
    room = _Room()
    record = room.cut(whole)
    selections = [stage for stage in record["stages"] if stage["stage"] == "selection"]
    return html_page(
        record.get("question", "A question"),
        soft(room.note),
        _answer(record),
        _facts(record),
        _rounds(record["rounds"]),
        *(_selection(stage, several=len(selections) > 1) for stage in selections),
        _stages(record["stages"]),
        _calls(record["calls"]),
        _settings(record["settings"]),
    )


def _answer(record: Mapping[str, Any]) -> str:
    """The answer; if no model was asked it is the context, which the reader opens."""
    answer = f'<div class="panel answer">{escape(record["answer"])}</div>' if record.get("answer") else ""
    shown = answer if record["calls"] or not answer else folded("context", answer)
    return shown + soft("; ".join(record["notes"]))


def _facts(record: Mapping[str, Any]) -> str:
    about = "about " if record["usage_estimated"] else ""
    facts = {"milliseconds": _number(record["ms"], ",.0f")}
    if record["calls"]:
        facts |= {
            "rounds": str(len(record["rounds"])),
            "model calls": str(len(record["calls"])),
            "tokens in": about + _number(record["input_tokens"], ",.0f"),
            "tokens out": about + _number(record["output_tokens"], ",.0f"),
            "cost": _cost(record["cost"]),
        }
    items = "".join(f"<li><b>{value}</b>{name}</li>" for name, value in facts.items())
    return f'<ul class="facts">{items}</ul>'


def _selection(stage: Mapping[str, Any], *, several: bool) -> str:
    candidates = stage["candidates"]
    kept = [candidate for candidate in candidates if candidate["kept"]]
    dropped = [candidate for candidate in candidates if not candidate["kept"]]
    where = f"Round {stage['round']}: " if several else ""
    ranks = [
        ScoredRank(c["rank"], float(c["score"]), c["kept"], c["reason"])
        for c in candidates
        if isfinite(float(c["score"]))
    ]
    return "".join(
        (
            f"<h2>{where}{len(kept)} of {len(candidates)} pieces kept{_tokens(kept)}</h2>",
            soft(_pairs(stage["settings"])),
            wide(score_curve(ranks)) if ranks else "",
            _candidates(kept) if kept else "",
            folded(f"{len(dropped)} dropped", _candidates(dropped)) if dropped else "",
        )
    )


def _tokens(kept: Iterable[Mapping[str, Any]]) -> str:
    """How many tokens the kept pieces have; nothing if they were not counted."""
    counts = [candidate["n_tokens"] for candidate in kept]
    return f", {sum(counts):,} tokens" if counts and None not in counts else ""


def _candidates(candidates: Iterable[Mapping[str, Any]]) -> str:
    rows = (
        (
            candidate["rank"],
            _number(candidate["score"], ".4g"),
            Html(f'<span class="soft">{escape(candidate["id"])}</span> {escape(candidate.get("text", ""))}'),
            candidate["reason"],
        )
        for candidate in candidates
    )
    return table([("rank", "num"), ("score", "num"), ("piece", "text"), ("why", "note")], rows)


def _rounds(rounds: Sequence[Mapping[str, Any]]) -> str:
    if not rounds:
        return ""
    columns = [
        ("round", "num"),
        ("step", "num"),
        ("pieces", "num"),
        ("score", "num"),
        ("context", "name"),
        ("then", "note"),
        ("draft", "text"),
    ]
    rows = (
        (
            turn["round"],
            turn["step"],
            len(turn["kept"]),
            "–" if turn["score"] is None else turn["score"],
            {-1: "less", 0: "as it is", 1: "more", None: ""}[turn["adjustment"]],
            turn["decision"],
            turn.get("text", ""),
        )
        for turn in rounds
    )
    return f"<h2>Feedback</h2>{table(columns, rows)}"


def _stages(stages: Sequence[Mapping[str, Any]]) -> str:
    columns = [
        ("stage", "name"),
        ("round", "num"),
        ("ms", "num"),
        ("kept", "num"),
        ("settings", "note"),
        ("note", "note"),
    ]
    rows = (
        (
            stage["stage"],
            "" if stage["round"] is None else stage["round"],
            _number(stage["ms"], ",.1f"),
            f"{sum(c['kept'] for c in stage['candidates'])} of {len(stage['candidates'])}",
            _pairs(stage["settings"]),
            stage["note"],
        )
        for stage in stages
    )
    return f"<h2>Stages</h2>{table(columns, rows)}"


def _calls(calls: Sequence[Mapping[str, Any]]) -> str:
    if not calls:
        return ""
    columns = [
        ("for", "name"),
        ("round", "num"),
        ("model", "name"),
        ("prompt", "name"),
        ("ms", "num"),
        ("tokens in", "num"),
        ("tokens out", "num"),
        ("cost", "num"),
        ("problem", "note"),
    ]
    rows = (
        (
            call["role"],
            "" if call["round"] is None else call["round"],
            call["model"],
            call["prompt_version"],
            _number(call["ms"], ",.0f"),
            _number(call["input_tokens"], ",.0f"),
            _number(call["output_tokens"], ",.0f"),
            _cost(call["cost"]),
            call["error"] or _CUT_OFF.get(call.get("cut_off", ""), ""),
        )
        for call in calls
    )
    texts = (
        folded(
            f"{call['role']}, {call['prompt_version']}",
            "".join(_panel(message["role"], message["content"]) for message in call["messages"])
            + _panel("reply", call["text"]),
        )
        for call in calls
        if "messages" in call
    )
    return f"<h2>Model calls</h2>{table(columns, rows)}{''.join(texts)}"


def _settings(settings: Mapping[str, Any]) -> str:
    if not settings:
        return ""
    text = json.dumps(settings, ensure_ascii=False, indent=2, default=str)
    return folded("settings", f'<pre class="panel">{escape(text)}</pre>')


def _panel(name: str, text: str) -> str:
    return f'{soft(name)}<pre class="panel">{escape(text)}</pre>'


def _pairs(settings: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in settings.items())


def _cost(cost: float | str | None) -> str:
    return "unknown" if cost is None else f"${_number(cost, '.6f')}"


def _number(value: float | str, form: str) -> str:
    """A number in this form; NaN and infinity are texts in a record."""
    return format(float(value), form)
