"""A trace as one HTML page: the question, what was sent, and what was kept and dropped by which score.

The page is made from the plain record of `Trace.to_dict`, so a stored record can become a page, too. It has
no scripts and loads no other files. Control characters in texts are written as escapes.
"""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from itertools import groupby
from typing import Any

from precise_rag._data import packaged_text
from precise_rag.errors import InputError
from precise_rag.redaction import visible

Record = Mapping[str, Any]

_LONGEST_TEXT, _LONGEST_LIST = 20_000, 500
"""Characters of one text, and entries of one list, that a page shows."""

_CUT_OFF = {"length": "cut off by the length limit", "content_filter": "cut off by the content filter"}


def trace_page(record: Record) -> str:
    """Return the page of a record made by `Trace.to_dict`. Raises InputError for any other record.

    A record without texts becomes a page without texts. Long texts and lists are cut, as its end says.
    """
    try:
        question, parts = str(record.get("question", "A question")), list(_parts(record))
    except (AttributeError, IndexError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise InputError(
            f"the record must be one that Trace.to_dict made ({type(error).__name__}: {error})"
        ) from error
    style, body = packaged_text("trace/page.css"), "\n".join(filter(None, parts))
    page = packaged_text("trace/page.html").rstrip()
    return visible(page.format(title=_text(question), style=style, body=body))


def _parts(record: Record) -> Iterable[str]:
    """The parts of the page, in their order, as markup. Some may be empty."""
    stages, calls = record["stages"], record["calls"]
    selections = [stage for stage in stages if stage["stage"] == "selection"]
    if calls and record.get("answer"):
        yield f"<pre>{_text(record['answer'])}</pre>"
    yield _soft("; ".join(record["notes"]))
    yield _what_was_sent(record["context"])
    for stage in _first(selections):
        yield _selection(stage, has_round=len(selections) > 1)
    yield _steps(stages, record["rounds"], calls)
    for call in _first(calls):
        yield _prompt_and_reply(call)
    yield _soft(_pairs(record["settings"]))


def _what_was_sent(excerpts: Sequence[Record]) -> str:
    """The excerpts below the name of their document, with the selected sentences marked."""
    if not excerpts:
        return ""
    tokens = sum(excerpt["tokens"] for excerpt in excerpts)
    parts = [f"<h2>What was sent: {_counted(excerpts, 'excerpt')}, {_number(tokens, ',.0f')} tokens</h2>"]
    for doc_id, of_document in groupby(_first(excerpts), key=lambda excerpt: excerpt["doc_id"]):
        parts.append(f"<h3>{_text(doc_id)}</h3>")
        above: Sequence[str] = ()
        for excerpt in of_document:
            titles = excerpt.get("above", ())
            if titles and titles != above:
                parts.append(f'<p class="above">{_text(" › ".join(titles))}</p>')
            above = titles
            parts.append(_excerpt(excerpt))
    return "".join(parts)


def _excerpt(excerpt: Record) -> str:
    place = f"characters {_number(excerpt['start'], ',.0f')} to {_number(excerpt['end'], ',.0f')}"
    label = f'<b class="number" title="{place}">{_text(excerpt["number"])}</b>'
    for name in ("page", "time"):
        if excerpt.get(name):
            label += f'<small class="soft">{name} {_text(excerpt[name])}</small> '
    return f'<div class="excerpt">{label}{_marked(excerpt) if "text" in excerpt else place}</div>'


def _marked(excerpt: Record) -> str:
    """The text of an excerpt; the better the rank of a selected sentence, the stronger its mark."""
    text, parts, at = excerpt["text"].rstrip(), [], 0
    for sentence in sorted(_first(excerpt["sentences"]), key=lambda one: float(one["start"])):
        start, end = (max(at, min(sentence[side] - excerpt["start"], len(text))) for side in ("start", "end"))
        share = 25 + 75 / (1 + max(float(sentence["rank"]) - 1, 0) / 5)
        why = f"rank {_number(sentence['rank'], 'g')}: {_text(sentence['reason'])}"
        parts.append(_text(text[at:start]))
        parts.append(f'<mark style="--strength:{share:.0f}%" title="{why}">{_text(text[start:end])}</mark>')
        at = end
    return "".join(parts) + _text(text[at:])


def _selection(stage: Record, *, has_round: bool) -> str:
    """The pieces with their scores and the reason of each decision."""
    candidates = stage["candidates"]
    kept = [candidate for candidate in candidates if candidate["kept"]]
    dropped = [candidate for candidate in candidates if not candidate["kept"]]
    where = f"Round {_text(stage['round'])}: " if has_round else ""
    parts = [
        f"<h2>{where}{len(kept):,} of {_counted(candidates, 'piece')} kept</h2>",
        _soft(_pairs(stage["settings"])),
        _pieces(kept),
    ]
    if dropped:
        parts.append(f"<details><summary>{len(dropped):,} dropped</summary>{_pieces(dropped)}</details>")
    return "".join(parts)


def _pieces(candidates: Sequence[Record]) -> str:
    items = (
        f"<li><p><b>{_number(one['rank'], 'g')}</b> {_number(one['score'], '.4g')}</p>"
        f'<p class="words">{_text(one.get("text", "").strip())}</p>'
        f'<p class="soft">{_text(one["reason"])} <small>{_text(one["id"])}</small></p></li>'
        for one in _first(candidates)
    )
    return f"<ol>{''.join(items)}</ol>" if candidates else ""


def _steps(stages: Sequence[Record], rounds: Sequence[Record], calls: Sequence[Record]) -> str:
    rows = [
        (
            stage["stage"] + ("" if stage["round"] is None else f", round {stage['round']}"),
            f"{sum(bool(one['kept']) for one in stage['candidates'])} of {len(stage['candidates'])} kept",
            _number(stage["ms"], ",.1f"),
            "; ".join(filter(None, (_pairs(stage["settings"]), stage["note"]))),
        )
        for stage in _first(stages)
    ]
    rows += [
        (
            f"feedback, round {turn['round']}",
            "no score" if turn["score"] is None else f"score {turn['score']}",
            "",
            f"{turn['decision']}\n{turn.get('text', '')}",
        )
        for turn in _first(rounds)
    ]
    rows += [
        (
            f"model: {call['role']}",
            f"{_number(call['input_tokens'], ',.0f')} tokens in, "
            f"{_number(call['overhead_tokens'], ',.0f')} of them beside the passages, "
            f"{_number(call['output_tokens'], ',.0f')} out, "
            + ("cost unknown" if call["cost"] is None else f"${_number(call['cost'], '.6f')}"),
            _number(call["ms"], ",.1f"),
            f"{call['model']} {call['error'] or _CUT_OFF.get(call['cut_off'], '')}",
        )
        for call in _first(calls)
    ]
    head = "".join(f"<th>{name}</th>" for name in ("step", "outcome", "ms", "remarks"))
    body = "".join(f"<tr>{''.join(f'<td>{_text(value)}</td>' for value in row)}</tr>" for row in rows)
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f'<h2>Steps</h2><div class="wide" tabindex="0">{table}</div>'


def _prompt_and_reply(call: Record) -> str:
    if "messages" not in call:
        return ""
    said = [(message["role"], message["content"]) for message in call["messages"]]
    texts = (f"{_soft(name)}<pre>{_text(text)}</pre>" for name, text in (*said, ("reply", call["text"])))
    title = f"{call['role']}, {call['prompt_version']}"
    return f"<details><summary>{_text(title)}</summary>{''.join(texts)}</details>"


def _first(items: Sequence[Record]) -> Sequence[Record]:
    return items[:_LONGEST_LIST]


def _counted(items: Sequence[Any], noun: str) -> str:
    return f"{len(items):,} {noun}{'' if len(items) == 1 else 's'}"


def _pairs(settings: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in settings.items())


def _number(value: float | str, form: str) -> str:
    """A number in this form; NaN and infinity are texts in a record. Raises ValueError for other texts."""
    return format(float(value), form)


def _soft(words: str) -> str:
    """A paragraph of secondary text; empty without words."""
    return f'<p class="soft">{_text(words)}</p>' if words else ""


def _text(value: object) -> str:
    text = str(value)
    return escape(text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}…")
