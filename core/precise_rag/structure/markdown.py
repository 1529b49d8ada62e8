"""Blocks of Markdown, by markdown-it."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import accumulate, islice
from typing import TYPE_CHECKING

from precise_rag.structure.blocks import BlockKind, BlockStart
from precise_rag.structure.marks import BOLD_LINE, COLUMNS, FEWEST_ROWS, FIELD, FORMULA, indent_of, leads_in
from precise_rag.structure.tables import begins_table

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_PART = 2**20
"""Characters parsed at once, to bound memory. The last block of a part is read again with the next one."""
_LINE = 2_000
"""Characters of a line that the parser sees; blocks are told by how their lines begin."""
_FRONT_MATTER = re.compile(r"[\s\ufeff]*---[ \t]*\n(?=\S)(?:[^\n]*\n){1,200}?(?:---|\.\.\.)[ \t]*(?:\n|\Z)")
_DEFINITION = re.compile(r"[ \t]{0,3}\[[^\[\]\n]{1,300}\]:[ \t]*(?:\S|\Z)")
"""A line that says where a link goes."""
_MEANING = re.compile(r"[ \t]{0,3}:[ \t]+\S")
"""A line with the meaning of the term above it."""
_TITLE_ITEM = re.compile(
    r"[ \t]{0,3}\d{1,3}[.)][ \t]+[^\W\d_][^\n]{0,98}(?<![.,;:!?。，；：！？…\s])[ \t]*\Z"
)
"""A numbered line that does not end as a sentence does."""
_HTML_KIND = re.compile(
    r"[ \t]{0,3}<(?:(h[1-6])|(table|thead|tbody|tr)|(pre|script|style|textarea))\b", re.IGNORECASE
)
_END_OF_HTML = re.compile(r"(?m)^[ \t]{0,12}</[A-Za-z]{1,20}>[ \t]{0,12}$(?=\n#{1,6}[ \t])")
"""The last line of HTML above a heading, which the parser does not see there without a blank line."""
_FENCE = re.compile(r"(?m)^[ \t]{0,3}(?:`{3,20}|~{3,20})([^\n`]{0,300})$\n?")


def markdown_blocks(text: str) -> Iterator[BlockStart]:
    """Yield the starts of the blocks of a Markdown text whose lines end in line feeds."""
    start = 0
    if match := _FRONT_MATTER.match(text):
        yield 0, "code", 0
        start = match.end()
    elif rest := _rest_of_code(text):
        yield 0, "code", 0
        start = rest
    while start < len(text):
        end = _part_end(text, start)
        rows, last = _read_part(text, start, end)
        start = end if end == len(text) or last == start else last
        yield from (row for row in rows if row[0] < start)


def _rest_of_code(text: str) -> int:
    """Where code ends that began before the text, as in a chunk that is cut within it; 0 without such code.

    The first fence then has no name of a language, and the next fence has one, or a blank line follows.
    """
    first, second = (*islice(_FENCE.finditer(text), 2), None, None)[:2]
    if first is None or first[1].strip():
        return 0
    is_end = second[1].strip() if second else text[first.end() : first.end() + 1] in ("\n", "")
    return first.end() if is_end else 0


def _part_end(text: str, start: int) -> int:
    """The end of a part: after a blank line, if there is one in its second half."""
    if len(text) - start <= _PART:
        return len(text)
    blank = text.rfind("\n\n", start + _PART // 2, start + _PART)
    line = text.rfind("\n", start + _PART // 2, start + _PART)
    return blank + 2 if blank >= 0 else line + 1 if line >= 0 else start + _PART


def _read_part(text: str, start: int, end: int) -> tuple[list[BlockStart], int]:
    """Return the blocks of a part, and where its last top-level block starts."""
    lines = text[start:end].split("\n")
    places = [*accumulate((len(line) + 1 for line in lines), initial=start)]
    tokens = _parser().parse(_END_OF_HTML.sub("", "\n".join(line[:_LINE] for line in lines)))
    top = [token.map[0] for token in tokens if token.level == 0 and token.map]
    return list(_starts(tokens, lines, places)), places[top[-1]] if top else start


@cache
def _parser() -> MarkdownIt:
    """A parser of blocks. Link definitions stay paragraphs, so that every line belongs to a block."""
    from markdown_it import MarkdownIt

    logging.getLogger("markdown_it").setLevel(logging.INFO)  # else a line for each rule and block
    parser = MarkdownIt("commonmark").enable("table").disable("reference")
    parser.core.ruler.enableOnly(["block"])
    return parser


def _starts(tokens: Sequence[Token], lines: Sequence[str], places: Sequence[int]) -> Iterator[BlockStart]:
    around: list[str] = []
    indents: list[int] = []
    """The items and quotes around a token, outermost first, and the indents of their marks."""
    bare = -1
    """The line of an item or quote that has had no block yet; -1 without one."""
    titles = _numbered_titles(tokens, lines)
    for token in tokens:
        name, _, side = token.type.rpartition("_")
        if name in ("list_item", "blockquote") and side == "open":
            around.append(name)
            indents.append(indent_of(lines[token.map[0]]) if token.map else 0)
            bare = token.map[0] if bare < 0 and token.map else bare
        elif name in ("list_item", "blockquote"):
            if name == "list_item" and bare >= 0:
                yield places[bare], "item", around.count("list_item")
            around.pop()
            indents.pop()
            bare = -1
        kind, level = _kind(token, lines)
        if kind is None or token.map is None:
            continue
        n_items = around.count("list_item")
        if token.map[0] in titles:
            kind, level = "heading", 6
        elif n_items and kind in ("paragraph", "heading") and not token.markup.startswith("#"):
            kind, level = "item", n_items
        elif "blockquote" in around and kind != "code":
            kind, level = "quote", 0
        first, last = token.map
        after = range(first, min(last + 2, len(lines))) if token.type == "paragraph_open" else ()
        meanings = [number for number in after if _MEANING.match(lines[number])]
        kind, level = ("item", n_items + 1 + (first in meanings)) if meanings else (kind, level)
        yield places[bare if bare >= 0 else first], kind, level
        yield from ((places[number], "item", n_items + 2) for number in meanings if first < number < last)
        bare = -1
        of_item = range(first + 1, last if kind == "item" else 0)
        for number, lead_in, level in _lead_ins(lines, of_item, indents):
            yield places[number], lead_in, level


def _lead_ins(lines: Sequence[str], of_item: range, indents: Sequence[int]) -> Iterator[BlockStart]:
    """The lead-ins of other items that Markdown reads as lines of an item. indents: of the marks around."""
    for number in of_item:
        level = sum(mark < indent_of(lines[number]) for mark in indents)
        below = [line for line in lines[number : min(number + 6, of_item.stop + 2)] if line.strip()]
        if level < len(indents) and leads_in(lines[number - 1], below):
            is_title = not level and BOLD_LINE.match(lines[number])
            kind: BlockKind = "heading" if is_title else "item" if level else "paragraph"
            yield number, kind, 6 if is_title else level


def _numbered_titles(tokens: Sequence[Token], lines: Sequence[str]) -> set[int]:
    """The lines of numbered titles, which Markdown reads as lists of one item each."""
    titles: set[int] = set()
    for place, token in enumerate(tokens[:-7]):
        if token.type == "ordered_list_open" and token.level == 0 and token.map:
            is_one_line = tokens[place + 5].type == "list_item_close" and token.map[1] - token.map[0] <= 2
            ends = tokens[place + 6].type == "ordered_list_close" and tokens[place + 7].type != "heading_open"
            if is_one_line and ends and _TITLE_ITEM.match(lines[token.map[0]]):
                titles.add(token.map[0])
    return titles if len(titles) > 1 else set()


def _kind(token: Token, lines: Sequence[str]) -> tuple[BlockKind | None, int]:
    """The kind and level of the block that a token begins; None if it begins none."""
    rows = lines[slice(*token.map or (0, 0))]
    line, below = (*rows, "", "")[:2]
    if token.type in ("paragraph_open", "code_block") and begins_table(line.strip(), below.strip()):
        return "table", 0
    match token.type:
        case "heading_open":
            is_setext = token.markup in "-=" and len(rows) > 2
            is_sign = is_setext and len(rows[-1].strip()) < 3  # of a formula
            are_fields = is_setext and all(FIELD.match(f"{row}\n") for row in rows[:-1])  # front matter
            kind: BlockKind = "paragraph" if is_sign else "code" if are_fields else "heading"
            return kind, int(token.tag[1]) if kind == "heading" else 0
        case "paragraph_open":
            if _DEFINITION.match(line) or FORMULA.match(line):
                return "code", 0
            if len(rows) >= FEWEST_ROWS and 1.5 * sum(map(bool, map(COLUMNS.match, rows))) >= len(rows):
                return "table", 0
            return ("heading", 6) if len(rows) == 1 and BOLD_LINE.match(line) else ("paragraph", 0)
        case "fence" | "code_block":
            return "code", 0
        case "table_open":
            return "table", 0
        case "html_block":
            match = _HTML_KIND.match(line)
            if match is None:
                return "paragraph", 0
            heading, table, _ = match.groups()
            return ("heading", int(heading[1])) if heading else ("table" if table else "code", 0)
        case _:
            return None, 0
