"""What was sent, on the page of a trace: the excerpts in their documents, with what was left out between."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from itertools import groupby
from typing import Any, NamedTuple

from precise_rag.viz.page import Html, folded, soft

_MOST_LEFT_OUT = 40
"""Pieces that one fold shows."""


class Mark(NamedTuple):
    """A part of an excerpt to show in another ink. css: its class. title: what a pointer over it shows.

    strength: of the ink, from 0 to 1.
    """

    start: int
    end: int
    css: str
    title: str = ""
    strength: float = 1.0


def context_section(record: Mapping[str, Any]) -> str:
    """Return the context as it was sent; nothing if the record has none.

    Selected sentences are highlighted in their place, what came along with them is plain, and the pieces
    that were left out are folded where they stand.
    """
    sent = record.get("context", [])
    if not sent:
        return ""
    left_out = _left_out(record["stages"], sent)
    documents = groupby(sent, key=lambda one: one["doc_id"])
    parts = [_document(doc_id, list(excerpts), left_out.get(doc_id, ())) for doc_id, excerpts in documents]
    tokens = sum(sum(one["tokens"].values()) for one in sent)
    title = f"What was sent: {_counted(len(sent), 'excerpt')}, {tokens:,} tokens"
    return f"<h2>{title}</h2>{''.join(parts)}{_tokens(sent)}"


def marked(text: str, marks: Iterable[Mark]) -> Html:
    """Return a text with parts of it in another ink. Marks that begin within another one are left out."""
    parts, at = [], 0
    for mark in sorted(marks):
        start, end = max(mark.start, 0), min(mark.end, len(text))
        if at <= start < end:
            title = f' title="{escape(mark.title)}"' if mark.title else ""
            start += len(text[start:end]) - len(text[start:end].lstrip())
            words = text[start:end].rstrip()
            ink = f' style="--ink-share:{30 + 70 * mark.strength:.0f}%"' if mark.strength < 1 else ""
            parts += [
                escape(text[at:start]),
                f'<mark class="{mark.css}"{ink}{title}>{escape(words)}</mark>',
                escape(text[start + len(words) : end]),
            ]
            at = end
    return Html("".join(parts) + escape(text[at:]))


def _document(
    doc_id: str, excerpts: Sequence[Mapping[str, Any]], left_out: Sequence[Mapping[str, Any]]
) -> str:
    parts, waiting = [], sorted(left_out, key=lambda piece: piece["start"])
    above: list[str] | None = None
    for excerpt in excerpts:
        before = [piece for piece in waiting if piece["start"] < excerpt["start"]]
        waiting = waiting[len(before) :]
        parts.append(_fold(before))
        if excerpt["above"] and excerpt["above"] != above:
            parts.append(f'<p class="above">{escape(" › ".join(excerpt["above"]))}</p>')
        above = excerpt["above"]
        parts.append(_excerpt(excerpt))
    parts.append(_fold(waiting))
    return f'<section class="document"><h3>{escape(doc_id)}</h3>{"".join(parts)}</section>'


def _excerpt(excerpt: Mapping[str, Any]) -> str:
    page = f", page {escape(str(excerpt['page']))}" if excerpt.get("page") else ""
    number = escape(str(excerpt["number"]))
    if "text" not in excerpt:
        place = f"characters {excerpt['start']:,} to {excerpt['end']:,}{page}"
        return f'<div class="excerpt"><b class="number">{number}</b> {place}</div>'
    start = excerpt["start"]
    sentences = (
        Mark(
            one["start"] - start,
            one["end"] - start,
            "found",
            f"rank {one['rank']}: {one['reason']}",
            1 / (1 + (one["rank"] - 1) / 5),
        )
        for one in excerpt["sentences"]
    )
    label = f'<b class="number" title="characters {start:,} to {excerpt["end"]:,}{page}">{number}</b>'
    where = f'<small class="soft">{page.removeprefix(", ")}</small> ' if page else ""
    return f'<div class="excerpt">{label}{where}{marked(excerpt["text"].rstrip(), sentences)}</div>'


def _left_out(
    stages: Sequence[Mapping[str, Any]], sent: Sequence[Mapping[str, Any]]
) -> dict[str, list[dict[str, Any]]]:
    """The pieces of each document that the last selection dropped and that no excerpt holds."""
    last = [stage for stage in stages if stage["stage"] in ("selection", "max_tokens")][-1:]
    by_document: dict[str, list[dict[str, Any]]] = {}
    for candidate in (candidate for stage in last for candidate in stage["candidates"]):
        doc_id, _, place = candidate["id"].rpartition(":")
        begin, _, stop = place.partition("-")
        if candidate["kept"] or not (begin.isdecimal() and stop.isdecimal()):
            continue
        start, end = int(begin), int(stop)
        is_sent = any(one["doc_id"] == doc_id and one["start"] < end and start < one["end"] for one in sent)
        if not is_sent:
            by_document.setdefault(doc_id, []).append({**candidate, "start": start})
    return by_document


def _fold(pieces: Sequence[Mapping[str, Any]]) -> str:
    if not pieces:
        return ""
    items = "".join(
        f"<li>{escape(piece.get('text', piece['id']).strip())} <small>{escape(piece['reason'])}</small></li>"
        for piece in pieces[:_MOST_LEFT_OUT]
    )
    more = soft(f"and {len(pieces) - _MOST_LEFT_OUT} more") if len(pieces) > _MOST_LEFT_OUT else ""
    summary = f"{_counted(len(pieces), 'piece')} left out here"
    return f'<div class="left">{folded(summary, f"<ul>{items}</ul>{more}")}</div>'


def _tokens(sent: Sequence[Mapping[str, Any]]) -> str:
    """A bar for each excerpt: tokens of its text, of what stands above it, and what is written around it."""
    most = max(sum(one["tokens"].values()) for one in sent) or 1
    rows = "".join(
        f"<li><span>{escape(str(one['number']))}</span>"
        + '<span class="bar">'
        + "".join(
            f'<i class="{escape(name)}" style="width:{100 * count / most:.1f}%"></i>'
            for name, count in one["tokens"].items()
        )
        + f"</span><span>{sum(one['tokens'].values()):,}</span></li>"
        for one in sent
    )
    sums = {name: sum(one["tokens"][name] for one in sent) for name in sent[0]["tokens"]}
    legend = " · ".join(
        f'<i class="{name}"></i> {words} {sums[name]:,}'
        for name, words in (("text", "text"), ("titles", "titles"), ("around", "written around each"))
    )
    return f'<h3>Tokens of each excerpt</h3><p class="legend">{legend}</p><ol class="bars">{rows}</ol>'


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
