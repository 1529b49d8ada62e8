"""Two traces side by side as one HTML page: what each sent, and which pieces only one of them kept."""

from collections.abc import Mapping
from html import escape
from typing import Any

from precise_rag.viz.page import Html, html_page, soft, table
from precise_rag.viz.trace_context import context_section
from precise_rag.viz.trace_page import as_page, read_record
from precise_rag.viz.trace_stages import time_line


def trace_comparison_page(
    first: Mapping[str, Any], second: Mapping[str, Any], names: tuple[str, str] = ("A", "B")
) -> str:
    """Return the page of two records made by `Trace.to_dict`, each named; below each other on a phone.

    Raises InputError for any other record.
    """
    records = (read_record(first), read_record(second))
    return as_page(records, lambda records: _page(records, names))


def _page(records: tuple[Mapping[str, Any], Mapping[str, Any]], names: tuple[str, str]) -> str:
    questions = list(dict.fromkeys(record.get("question", "A question") for record in records))
    sides = "".join(
        f"<div><h2>{escape(name)}</h2>{_side(record)}</div>"
        for name, record in zip(names, records, strict=True)
    )
    return html_page(
        " / ".join(questions),
        soft(f"{names[0]} and {names[1]}"),
        Html(f'<div class="sides">{sides}</div>'),
        _pieces(records, names),
    )


def _side(record: Mapping[str, Any]) -> str:
    answer = record.get("answer", "") if record["calls"] else ""
    written = f'<div class="panel answer">{escape(answer)}</div>' if answer else ""
    facts = soft(f"{record['ms']:,.0f} ms, {len(record['calls'])} model calls")
    return written + facts + context_section(record) + time_line(record["stages"], record["calls"])


def _pieces(records: tuple[Mapping[str, Any], Mapping[str, Any]], names: tuple[str, str]) -> str:
    """The pieces that either selection kept, with both ranks; what only one kept comes first."""
    ranks = [_ranks(record) for record in records]
    texts = {key: text for side in ranks for key, (_, _, text) in side.items()}
    kept = [{key for key, (_, is_kept, _) in side.items() if is_kept} for side in ranks]
    shown = sorted(
        kept[0] | kept[1],
        key=lambda key: (
            key in kept[0] and key in kept[1],
            min(side[key][0] for side in ranks if key in side),
        ),
    )
    rows = [(*(_rank(side.get(key)) for side in ranks), texts[key].strip() or key) for key in shown]
    only = [len(kept[0] - kept[1]), len(kept[1] - kept[0])]
    title = (
        f"{len(kept[0] & kept[1])} pieces in both, {only[0]} only in {names[0]}, {only[1]} only in {names[1]}"
    )
    columns = [(names[0], "num"), (names[1], "num"), ("piece", "text")]
    return f"<h2>{escape(title)}</h2>{table(columns, rows)}" if rows else ""


def _ranks(record: Mapping[str, Any]) -> dict[str, tuple[int, bool, str]]:
    last = [stage for stage in record["stages"] if stage["stage"] in ("selection", "max_tokens")][-1:]
    return {
        one["id"]: (one["rank"], one["kept"], one.get("text", ""))
        for stage in last
        for one in stage["candidates"]
    }


def _rank(place: tuple[int, bool, str] | None) -> str:
    if place is None:
        return "not found"
    rank, is_kept, _ = place
    return f"kept, {rank}" if is_kept else f"left out, {rank}"
