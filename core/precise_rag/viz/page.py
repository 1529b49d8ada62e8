"""The frame, the style sheet and the tables of every HTML page.

A page works on its own: it has no scripts, and loads no fonts, images or other files.
"""

from collections.abc import Collection, Iterable, Sequence
from html import escape

from precise_rag.redaction import visible

_STYLE = """
:root { color-scheme: light dark; --ink: #1d2430; --soft: #667085; --line: #dfe3ea; --paper: #ffffff;
  --panel: #f4f6f8; --other: #fbf6ee; --keep: #14746f; --drop: #b4bac4; --accent: #c2410c; --mark: #ffe08a; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ef; --soft: #98a2b3; --line: #353c48;
  --paper: #14181f; --panel: #1c222c; --other: #26221b; --keep: #4fc3b8; --drop: #5b6472;
  --accent: #fb923c; --mark: #7a5c00; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 64rem; margin: 2rem auto; padding: 0 1.2rem; overflow-wrap: anywhere; }
h1 { font-size: 1.45rem; margin: 0 0 .4rem; } h2 { font-size: 1.2rem; margin: 2.2rem 0 .6rem; }
h3 { font-size: 1.05rem; margin: 1.6rem 0 .6rem; } h4 { margin: 1rem 0 .4rem; }
a { color: var(--keep); }
.soft { color: var(--soft); } p.soft { font-size: .9rem; margin: .4rem 0 1rem; }
.up { color: var(--keep); } .down { color: var(--accent); }
mark { background: var(--mark); color: inherit; }
.panel { background: var(--panel); border-radius: .4rem; padding: .6rem .9rem; margin: .4rem 0;
  white-space: pre-wrap; font: inherit; font-size: .9rem; }
.answer { border-left: 4px solid var(--keep); font-size: 1rem; }
.facts { display: flex; flex-wrap: wrap; gap: .4rem 2rem; margin: 1rem 0; padding: 0; list-style: none; }
.facts b { display: block; font-size: 1.2rem; font-variant-numeric: tabular-nums; }
details { border: 1px solid var(--line); border-radius: .4rem; padding: .4rem .8rem; margin: .5rem 0; }
summary { cursor: pointer; }
.wide { overflow-x: auto; }
.sides { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 22rem), 1fr)); gap: 1rem; }
table { border-collapse: collapse; font-size: .88rem; margin: .4rem 0; }
th { color: var(--soft); font-weight: 500; text-align: left; white-space: nowrap; }
th.num { white-space: normal; overflow-wrap: normal; }
th, td { border-bottom: 1px solid var(--line); padding: .3rem .6rem .3rem 0; vertical-align: top; }
th:first-child, td:first-child { padding-left: .3rem; }
td { overflow-wrap: break-word; } tr.shaded { background: var(--panel); }
.num { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.name { white-space: nowrap; } td.text { min-width: 13rem; white-space: pre-wrap; overflow-wrap: anywhere; }
.note { min-width: 9.5rem; }
svg { width: 100%; height: auto; display: block; margin: .6rem 0; }
.wide > svg { min-width: 45rem; max-width: 52rem; }
.small { display: flex; flex-wrap: wrap; gap: .6rem; } .small svg { width: 236px; margin: 0; }
svg text { fill: var(--soft); font-size: 12px; } svg .title { fill: var(--ink); font-weight: 600; }
svg .grid { stroke: var(--line); } svg .axis { stroke: var(--soft); }
svg .keep { fill: var(--keep); } svg .drop { fill: var(--drop); }
svg .evidence { fill: var(--accent); } svg .evidence.drop { fill-opacity: .4; }
svg .cut { stroke: var(--ink); stroke-dasharray: 4 3; }
svg text.cut-label, svg text.name-label { fill: var(--ink); }
svg .limit { stroke: var(--accent); stroke-dasharray: 4 3; }
svg .score { fill: none; stroke: var(--keep); stroke-width: 1.5; }
svg .at { stroke: var(--accent); stroke-opacity: .55; } svg .point { fill: var(--accent); }
.chunk { border-radius: .4rem; padding: .6rem .9rem; margin: 0 0 .3rem; white-space: pre-wrap; }
.chunk:nth-of-type(odd) { background: var(--panel); } .chunk:nth-of-type(even) { background: var(--other); }
.chunk > b { display: block; font-size: .8rem; font-weight: 500; color: var(--soft); }
.chunk .kind { display: block; font-size: .72rem; color: var(--soft); margin-top: .3rem; }
.chunk .heading { font-weight: 600; } .chunk .item, .chunk .quote { display: block; padding-left: 1rem; }
pre.code { font: .82rem/1.45 ui-monospace, monospace; white-space: pre; overflow-x: auto; margin: .2rem 0; }
.legend-of { list-style: none; padding: 0; font-size: .85rem; }
.legend-of i { display: inline-block; width: .8rem; height: .25rem; margin-right: .5rem;
  vertical-align: middle; }
.gap { font-size: .75rem; font-variant-numeric: tabular-nums; padding: 0 .25em; white-space: nowrap;
  color: var(--soft); }
pre.code + .gap { display: block; padding: 0; }
.below { font-weight: 700; color: var(--accent); }
.phone { display: none; }
mark.found { background: color-mix(in srgb, var(--mark) var(--ink-share, 100%), transparent);
  border-radius: .15rem; padding: .05rem 0; }
mark.answer { background: var(--keep); color: var(--paper); border-radius: .15rem; }
.document { border: 1px solid var(--line); border-radius: .5rem; padding: .2rem 1rem .8rem; margin: .8rem 0; }
.document h3 { margin: .6rem 0; font-size: .95rem; } .above { font-weight: 600; margin: .8rem 0 .2rem; }
.excerpt { white-space: pre-wrap; border-left: 3px solid var(--keep); padding: .1rem 0 .1rem .9rem;
  margin: .5rem 0; }
.number { color: var(--keep); margin-right: .6rem; font-variant-numeric: tabular-nums; }
.left details { border: 0; padding: 0; margin: .3rem 0; }
.left summary { color: var(--soft); font-size: .85rem; }
.left ul { color: var(--soft); font-size: .9rem; padding-left: 1.1rem; margin: .3rem 0;
  white-space: pre-wrap; }
.left small { opacity: .85; }
ol.bars, ol.line, ol.pieces { list-style: none; padding: 0; margin: .5rem 0; }
.bars li { display: grid; grid-template-columns: 2rem 1fr 3.5rem; gap: .6rem; align-items: center;
  font-size: .85rem; font-variant-numeric: tabular-nums; } .bars span:last-child { text-align: right; }
.bar { display: flex; height: .7rem; } .bar i, .legend i { background: var(--keep); display: block; }
.legend { font-size: .85rem; color: var(--soft); margin: .2rem 0; }
.legend i { display: inline-block; width: .7rem; height: .7rem; margin-left: .3rem; }
i.titles { background: var(--accent) !important; } i.around { background: var(--drop) !important; }
.line li { display: grid; grid-template-columns: 1fr auto; gap: .1rem .8rem; margin: .6rem 0;
  font-size: .9rem; }
.line .bar { grid-column: 1 / -1; background: var(--panel); }
.line p { grid-column: 1 / -1; margin: .1rem 0; }
.line .ms { font-variant-numeric: tabular-nums; } .step { color: var(--soft); } .step b { color: var(--ink); }
.pieces li { border-top: 1px solid var(--line); padding: .5rem 0; } .pieces p { margin: .15rem 0; }
.facts-of { font-size: .85rem; font-variant-numeric: tabular-nums; } .facts-of > b { margin-right: .5rem; }
.ranks { color: var(--soft); margin-left: .6rem; } .ranks b { color: var(--ink); }
.ranks .up { color: var(--keep); }
.ranks .down { color: var(--accent); } .words { white-space: pre-wrap; } .why { font-size: .85rem; }
.why, .why small { color: var(--soft); }
@media (max-width: 40rem) { .desk { display: none; } .phone { display: block; }
  body { padding: 0 .8rem; margin-top: 1rem; } .document { padding: .2rem .7rem .6rem; }
  table, tbody, tr { display: block; } thead { display: none; }
  tr { border-top: 1px solid var(--line); padding: .3rem 0; }
  td, td.num, td.name { display: flex; gap: .8rem; justify-content: space-between; border: 0;
  padding: .1rem 0;
    white-space: normal; text-align: right; min-width: 0; }
  td::before { content: attr(data-name); color: var(--soft); text-align: left; flex: none; max-width: 55%; }
  td:first-child { padding-left: 0; font-weight: 600; } td:empty { display: none; }
  td.text, td.note { display: block; text-align: left; }
  td.text::before, td.note::before { display: block; font-size: .8rem; } }
.cut-at { color: var(--accent); font-size: .8rem; margin: 0 0 .3rem .9rem; }
"""


class Html(str):
    """Text that is markup already; the helpers of this module escape any other value."""

    __slots__ = ()


def html_page(title: str, *parts: str) -> str:
    """Return a whole page: the title as heading, then the parts, which are markup.

    Control characters and marks of direction are written as escapes: they would change what a reader sees.
    """
    return visible(
        "\n".join(
            (
                '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">',
                '<meta name="viewport" content="width=device-width, initial-scale=1">',
                f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body>",
                f"<h1>{escape(title)}</h1>",
                *(part for part in parts if part),
                "</body></html>",
            )
        )
    )


def table(
    columns: Sequence[tuple[str, str]],
    rows: Iterable[Sequence[object]],
    *,
    shaded: Collection[int] = (),
) -> Html:
    """Return a table. On a phone each row is a list of its values, each with the heading of its column.

    columns: heading and kind of each column: "num" (a number, aligned to the right), "name" (not
        wrapped), "text" (keeps its white space) or "note" (wrapped).
    rows: one value per column.
    shaded: numbers of the rows, from 0, to shade.
    """
    head = "".join(f"<th{_class(kind)}>{escape(name)}</th>" for name, kind in columns)
    body = "".join(
        f"<tr{_class('shaded' if number in shaded else '')}>"
        + "".join(
            f'<td{_class(kind)} data-name="{escape(name)}">{_markup(value)}</td>'
            for value, (name, kind) in zip(row, columns, strict=True)
        )
        + "</tr>"
        for number, row in enumerate(rows)
    )
    return wide(f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>")


def wide(markup: str) -> Html:
    """Return a table or picture in a box that scrolls sideways, so that the page does not."""
    return Html(f'<div class="wide" tabindex="0">{markup}</div>')


def two_sizes(desk: str, phone: str) -> Html:
    """Return a picture in two sizes, of which a page shows the one that fits."""
    return Html(f'<div class="desk">{desk}</div><div class="phone">{phone}</div>')


def code(text: str) -> Html:
    """Return lines in a monospace face that scroll on their own if they are wider than the page."""
    return Html(f'<pre class="code" tabindex="0">{escape(text.rstrip())}</pre>')


def folded(summary: object, body: str) -> Html:
    """Return markup that the reader opens by its summary."""
    return Html(f"<details><summary>{_markup(summary)}</summary>{body}</details>")


def soft(text: object) -> Html:
    """Return a paragraph of secondary text, or nothing if the text is empty."""
    return Html(f'<p class="soft">{_markup(text)}</p>' if text else "")


def shorten(text: str, length: int) -> str:
    """Return `text`, cut to at most `length` characters with an ellipsis."""
    return text if len(text) <= length else f"{text[: length - 1]}…"


def _class(name: str) -> str:
    return f' class="{name}"' if name else ""


def _markup(value: object) -> str:
    return value if isinstance(value, Html) else escape(str(value))
