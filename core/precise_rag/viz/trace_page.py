"""A trace as one HTML page.

The page is made from the plain record of `Trace.to_dict`, so a stored record can still become a page. A
record without texts becomes a page without texts.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any, TypeVar

from precise_rag.errors import InputError
from precise_rag.viz.page import folded, html_page, soft, table
from precise_rag.viz.trace_context import context_section
from precise_rag.viz.trace_stages import selection_section, time_line

_CUT_OFF = {"length": "cut off by the length limit", "content_filter": "cut off by the content filter"}
_MOST_CHARACTERS, _MOST_ITEMS = 4_000_000, 20_000
"""Of all texts and of all lists of a record that a page shows."""
_LONGEST_TEXT, _LONGEST_LIST = 50_000, 1_000
"""The same for one text and for one list."""
_SHORT_TEXT, _LONGEST_NAME = 20, 200
"""A text that is never cut, such as a number, and the longest name of a setting."""

R = TypeVar("R")
T = TypeVar("T")


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
    return as_page(record, _page)


def read_record(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a record with long texts and lists cut. Raises InputError if `Trace.to_dict` did not make it."""
    return as_page(record, lambda record: {**_Room().cut(record), "stages": _Room().cut(record["stages"])})


def as_page(record: R, show: Callable[[R], T]) -> T:
    """Return what `show` makes of a record. Raises InputError if `Trace.to_dict` did not make the record."""
    try:
        return show(record)
    except (AttributeError, IndexError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise InputError(
            f"the record must be one that Trace.to_dict made ({type(error).__name__}: {error})"
        ) from error


def _page(whole: Mapping[str, Any]) -> str:
    room = _Room()
    record = room.cut(whole)
    stages = record["stages"]
    selections = [stage for stage in stages if stage["stage"] == "selection"]
    several = len(selections) > 1
    return html_page(
        record.get("question", "A question"),
        soft(room.note),
        _answer(record),
        context_section(record),
        _facts(record),
        time_line(stages, record["calls"]),
        _rounds(record["rounds"]),
        *(selection_section(stage, stages, is_one_of_several=several) for stage in selections),
        _calls(record["calls"]),
        _settings(record["settings"]),
    )


def _answer(record: Mapping[str, Any]) -> str:
    """The answer of a model; without one it is the context, which has a section of its own."""
    is_context = not record["calls"] and record.get("context")
    is_shown = record.get("answer") and not is_context
    answer = f'<div class="panel answer">{escape(record["answer"])}</div>' if is_shown else ""
    return answer + soft("; ".join(record["notes"]))


def _facts(record: Mapping[str, Any]) -> str:
    about = "about " if record["usage_estimated"] else ""
    if not record["calls"]:
        return ""
    facts = {
        "rounds": str(len(record["rounds"])),
        "model calls": str(len(record["calls"])),
        "tokens in": about + _number(record["input_tokens"], ",.0f"),
        "tokens out": about + _number(record["output_tokens"], ",.0f"),
        "cost": _cost(record["cost"]),
    }
    items = "".join(f"<li><b>{value}</b>{name}</li>" for name, value in facts.items())
    return f'<ul class="facts">{items}</ul>'


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


def _cost(cost: float | str | None) -> str:
    return "unknown" if cost is None else f"${_number(cost, '.6f')}"


def _number(value: float | str, form: str) -> str:
    """A number in this form; NaN and infinity are texts in a record."""
    return format(float(value), form)
