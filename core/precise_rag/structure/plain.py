"""Blocks of plain text and reStructuredText, by rules on its lines."""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import filterfalse, islice, pairwise, takewhile

from precise_rag._data import packaged_text
from precise_rag.structure import marks
from precise_rag.structure.blocks import OPTIONS, BlockKind, BlockStart, lost_indent
from precise_rag.structure.item_marks import ItemMark, with_mark
from precise_rag.structure.plain_lines import (
    ASKING,
    LEVEL_OF_NUMBERS,
    LONG_NUMBER,
    LONGEST_HEADING,
    STOP,
    Line,
    counted_titles,
    fits_above,
    has_case,
    has_two_sentences,
    in_capitals,
    numbered_titles,
    read_lines,
    without_pages,
    without_stops,
    wrapped_numbers,
)
from precise_rag.structure.plain_tables import LONGEST_CELL, run_end, table_end
from precise_rag.structure.running import RUNNING_LINES, running_key

_CODE_DIRECTIVES = packaged_text("structure/code_directives.txt").split()
_CODE_SIGNS = re.compile(
    r"[=({\[;<>]|^[ \t]*(?:\$|>>>|#|//|def |class |import |from |return\b|for |while |if |try\b|with |end\b)"
)
_PROMPTS = (">" * 3 + " ", "... ")
_LONGEST_TERM, _NO_TERM, _MIDDLE = 80, 9_999, 10
_WORDS_OF_TERM = 6
"""Of a term without a sign before it; its line ends before the first word of its meaning had to go below."""
_COMMAND = re.compile(r"\S{1,40}(?: [^\s\[]\S{0,40})? \[[-<]")
"""The beginning of a command with options: "cut [-d] [-n name] part". It may go on below, as "[-o name]"."""
_LITERALS = re.compile(r"``[^`\n]{1,60}``(?:,? ``[^`\n]{1,60}``)*|--?\w[\w-]*(?:[ =][<\[{A-Z]\S{0,40}){0,4}")
"""A line of reStructuredText, or an option, that is a term even if its meaning is below a blank line."""
_LEVEL_OF_CAPITALS = 8
"""Below underlined titles, which count from 1 in the order of their styles, and above titles with numbers."""
_FEWEST_LETTERS, _NAME = 4, re.compile(r"[^\W_0][^=|]*[^\W_]")
"""Of a heading in capitals; and what one right above its text is."""
_SHORT, _LONG_LINE, _NO_TITLE = 20, 60, re.compile(r"\\|[:：] ")
_RARE = {_LEVEL_OF_CAPITALS: 2, LEVEL_OF_NUMBERS: 20}  # titles to one that is none of an outer style
_SMALL_WORD = 3
"""Letters of a word that ends a line in its sentence, as "if" does above a list of conditions."""
_FIELD = re.compile(r":[\w -]{1,40}:(?:\s|\Z)")
_VALUE = re.compile(r"[^\w\s]?\s?[\d.,:/–-]{1,20}\s?[%°€$£]?\w{0,2}")
_FEWEST_CELLS, _CELLS_AHEAD, _CHARACTERS_OF_CELLS = 8, 200, 300
_ORG = re.compile(r"#\+[A-Za-z_]{3,30}(?:[:\s]|\Z)|:PROPERTIES:\Z")
_STARS = re.compile(r"\*{1,9}(?=[ \t]+\S)")
_LISTING = re.compile(r"(?:(-|\.)\1{3,}\Z)|(?i:#\+(?:begin|(end))_(?:src|example))")
_HUNK = re.compile(r"(diff --git )|@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@")
"""A mark of Org, the beginning of its headings, a line around a listing of AsciiDoc or Org, and the line with
which a file, or a hunk, of a diff begins."""
_SECTION = re.compile(r"\[{1,2}[\w .:/@\"'-]{1,80}\]{1,2}")
_SETTING = re.compile(r"[#;!/ ]{0,9}(?:[\w.\"'/-]{1,80}[ \t]{0,40}=|\d{1,2}[:.]\d\d\s)")
_PASSED = re.compile(rf"(?!{_SETTING.pattern})(?:[#;!]|//|{_SECTION.pattern}\Z)")
"""The head of a section of settings or of a day, a setting or time below it, and what may stand between."""


def plain_blocks(text: str) -> Iterator[BlockStart]:
    """Yield the starts of the blocks of a plain text whose lines end in line feeds."""
    mail_heads = {head.start(): head.end() for head in marks.MAIL_HEAD.finditer(text)}
    bare = without_pages(text, lines := read_lines(text))
    bare[:1] = [line._replace(indent=line.indent or lost_indent(text)) for line in bare[:1]]
    read = [*(reader := _Reader(without_stops(bare), mail_heads)).blocks()]
    levels = [level for _, kind, level in read if kind != "item" and level >= _LEVEL_OF_CAPITALS]
    seen = [min(level, LEVEL_OF_NUMBERS) + (level >= _SHORT) for level in levels if not reader.has_outer]
    rare = [a for a, n in _RARE.items() if n * seen.count(a) < len(seen) * (seen[:1] > [LEVEL_OF_NUMBERS])]
    heads = {("heading", level): _SHORT for level in levels if min(level, LEVEL_OF_NUMBERS) in rare}
    blocks = {at: (at, kind, max(level, heads.get((kind, level), 0))) for at, kind, level in read}
    ends = [*(line.start for line in bare), len(text)]
    begun = {*blocks, len(text)}
    pages = {line.start for line in lines if ends[bisect_left(ends, line.start)] in begun}.difference(blocks)
    yield from sorted([*blocks.values(), *((start, "paragraph", 0) for start in pages)])


def _is_cell(line: Line) -> bool:
    """Whether a line may be the cell of a table that is a paragraph."""
    is_alone = line.after_blank and line.before_blank
    return is_alone and len(line.words) <= LONGEST_CELL and not line.words.endswith(marks.STOPS)


def _name_above(line: Line) -> str:
    """The words in capitals, but for what is in brackets, of a line right above others; "" without them."""
    words = line.words.partition(" (")[0] if line.words.endswith(")") else line.words.rstrip(":.")
    is_above = line.after_blank and not line.before_blank and len(line.words) <= LONGEST_HEADING
    is_name = is_above and _NAME.fullmatch(words) and in_capitals(words) and not marks.COLUMNS.match(words)
    return words if is_name and sum(map(str.isalpha, words)) >= _FEWEST_LETTERS else ""


def _are_around(over: str, title: str, under: str) -> bool:
    """Whether a title is between two equal lines that are longer, or two of one length and other marks."""
    are_alike = len(under) == len(over) and marks.ADORNMENT.match(under) and not marks.COLUMNS.match(title)
    return len(title) <= len(over) if under == over else bool(are_alike)


def _listings(lines: Sequence[Line]) -> dict[int, int]:
    """The first and last lines of listings of AsciiDoc, if some have two lines inside, or of Org."""
    found, start = dict[int, int](), -1
    for number, line in enumerate(lines):
        if not line.indent and (mark := _LISTING.match(line.words)):
            ends = line.words == lines[start].words and line.before_blank and not line.after_blank
            if start >= 0 and (mark[2] or ends):
                found[start], start = number, -1
            elif not mark[1] or line.after_blank or lines[number - 1].words[0] in "[.+":
                start = -1 if line.before_blank else number
            elif abs(len(line.words) - len(lines[number - 1].words)) < _FEWEST_LETTERS:  # a title's
                start = -1
    return found if any(end - start > 2 for start, end in found.items()) else {}


class _Reader:
    def __init__(self, lines: Sequence[Line], mail_heads: Mapping[int, int]) -> None:
        self.lines, self.mail_heads = lines, mail_heads
        self.occurs = Counter(running_key(line.words) for line in lines if _is_cell(line))
        self.names = Counter(name for line in lines if (name := _name_above(line)))
        recurs = sum(n for n in self.names.values() if n > 1)
        self.is_play = max(RUNNING_LINES, self.names.total() / 2) <= recurs  # names of who speaks
        self.counted, self.numbered = counted_titles(lines), numbered_titles(lines)
        self.has_outer = self.is_play or any(in_capitals(lines[number].words) for number in self.counted)
        self.deepest = max(self.counted.values(), default=LEVEL_OF_NUMBERS)
        self.wrapped = wrapped_numbers(lines)
        self.lists = {line.words for line in lines if line.words.startswith("[[")}
        self.is_org = any(_ORG.match(line.words) for line in lines)
        self.listings = _listings(lines)
        self.styles: dict[tuple[str, bool], int] = {}
        self.kind: BlockKind | None = None
        self.level = self.indent = 0
        """Kind, level and indent of the block that is being read."""
        self.marks: list[ItemMark] = []
        """The kinds of marks of the items around, the outermost first."""
        self.cells_end = self.no_cells = 0
        """The number of the line behind the loose cells that are read, and of the next that may be one."""
        self.colon = False
        """Whether the block before ends in a colon."""
        self.term = _NO_TERM
        """The indent of the outermost term whose meaning is read."""

    def blocks(self) -> Iterator[BlockStart]:
        number = 0
        while number < len(self.lines):
            if self.lines[number].indent <= self.term:
                self.term = _NO_TERM
            readers = (self._listing, self._title, self._table, self._directive, self._loose_cells)
            if taken := next(filter(None, (read(number) for read in readers)), None):
                kind, level, n_lines = taken
                around = self.kind, self.level, self.indent
                yield self._open(number, kind, level)
                number += n_lines
                self.colon = kind == "paragraph" and self.lines[number - 1].words.endswith(":")
                self.kind = kind if kind == "paragraph" else None
                if kind in ("table", "code") and around[0] == "item" and self.indent > around[2]:
                    self.kind, self.level, self.indent = around
                continue
            if block := self._block(number):
                yield self._open(number, *block)
            self.colon = self.kind != "code" and marks.ends_in_colon(self.lines[number].words)
            number += 1

    def _open(self, number: int, kind: BlockKind, level: int) -> BlockStart:
        self.kind, self.level, self.indent = kind, level, self.lines[number].indent
        return self.lines[number].start, kind, level

    def _block(self, number: int) -> tuple[BlockKind, int] | None:
        """The kind and level of the block that a line begins; None if the line continues its block."""
        line = self.lines[number]
        words = line.words
        if words.startswith(_PROMPTS[0]) or (self.kind == "code" and self._goes_on(line)):
            is_code = self.kind == "code" and not (line.after_blank and line.indent < self.indent)
            return None if is_code else ("code", 0)
        if words[0] == ">" and not words.startswith(">>>"):
            return None if self.kind == "quote" and not line.after_blank else ("quote", 0)
        if words[0] == "|" and words.count("|") > 2 and (words[1] == " " or words[-1] == "|"):
            return None if self.kind == "table" and not line.after_blank else ("table", 0)
        is_term = self._is_term(number)
        self.term = min(self.term, line.indent if is_term else _NO_TERM)
        is_below = self.colon and line.after_blank and line.indent > self.indent
        if is_below and not is_term and not marks.ITEM.match(f"{words} "):
            is_code = "::" in self.lines[number - 1].words[-2:] or _CODE_SIGNS.search(words) is not None
            return "code" if is_code else "quote", 0
        is_in = self.kind == "paragraph" and line.indent > self.indent + 1
        if line.after_blank and (marks.FORMULA.match(words) or (is_in and marks.CODE_LINE.match(words))):
            return "code", 0
        if is_term or (marks.ITEM.match(words) and number not in self.wrapped and self._is_item(number)):
            self.marks = self.marks if self.kind == "item" else []
            self.marks, depth = (self.marks, 0) if is_term else with_mark(self.marks, line)
            return "item", 1 + line.indent // 2 + depth
        if not line.after_blank:
            ends = self.kind == "quote" and self.lines[number - 1].words[0] == ">" and not words[0].islower()
            ends |= self.kind == "item" and line.indent <= self.indent and marks.TIME.match(words) is not None
            return ("paragraph", 0) if ends or self.kind is None else self._lead_in(number)
        if self.kind == "item" and line.indent > self.indent:
            return "item", self.level
        if self.kind == "quote" and line.indent >= self.indent > 0:
            return "quote", 0
        level = self._heading_level(number)
        return "heading" if level > 0 else "paragraph", abs(level)

    def _is_in_capitals(self, number: int) -> bool:
        """Whether a line in capitals, but for what is in brackets, is a heading right above its text."""
        line, *below = self.lines[number : number + 2]
        if not below or not _name_above(line) or (line.words.endswith(".") and not self.is_play):
            return False
        is_wrapped = in_capitals(below[0].words) and not marks.COLUMNS.match(below[0].words)
        is_running = self.names[_name_above(line)] >= RUNNING_LINES and not self.is_play
        is_bare = not (is_wrapped or is_running or self._is_term(number))
        return is_bare and (self.is_play or self._heads(number))

    def _is_term(self, number: int) -> bool:
        """Whether a line is a term, or an option, whose meaning is indented below it."""
        line, *below = self.lines[number : number + 4]
        row, *rows = (" " * one.indent + one.words for one in (line, *below))
        words, before = line.words, self.lines[max(number - 1, 0)]
        is_rest = before.indent == line.indent or words.count("[") < words.count("]")
        is_rest = is_rest or (words[0] == "[" and _COMMAND.match(before.words) is not None)
        if (is_rest and not line.after_blank) or not below or marks.TIME.match(words):
            return False
        while below[1:] and not below[0].after_blank and OPTIONS.match(f"{row}\n{rows[0]}"):
            (line, *below), (row, *rows) = below, rows
        if below[0].after_blank:
            return _LITERALS.fullmatch(words) is not None and below[0].indent > line.indent + 1
        if marks.label_end(row, rows[0]):
            return True
        if len(words) > _LONGEST_TERM or words.removesuffix("...").endswith(STOP) or has_two_sentences(words):
            return False
        if below[0].indent <= line.indent + 1:
            return below[0].words.startswith(": ") and not marks.ITEM.match(words)
        if words[0] in "`\"'<-([$*:" or _COMMAND.match(words):
            return True
        if number == 0 and (words[0] in ")]}" or (below[0].words[0].islower() and not self._is_term(1))):
            return False  # the rest of a sentence, in a text that was cut out of another
        n_words = len(words.split()) + len(marks.WIDE.findall(words)) // 2
        is_above_term = any(not one.after_blank and one.indent > below[0].indent + 1 for one in below[1:2])
        is_short = n_words <= _WORDS_OF_TERM or in_capitals(words)
        is_section = in_capitals(words) and not (line.indent or self.is_play)
        return is_short and (is_section or is_above_term or fits_above(line, below[0]))

    def _lead_in(self, number: int) -> tuple[BlockKind, int] | None:
        """The lead-in of other items that a line right below an item begins, not right of its mark."""
        line, indents = self.lines[number], [mark.indent for mark in self.marks] or [-1]
        before, *rest = (" " * one.indent + one.words for one in self.lines[number - 1 : number + 4])
        if self.kind != "item" or line.indent > min(self.indent, indents[-1]):
            return None
        if not marks.leads_in(before, rest):
            return ("paragraph", 0) if before.endswith(marks.STOPS) and self._is_below_list(number) else None
        return ("item", self.level - 1) if line.indent > indents[0] else ("paragraph", 0)

    def _is_below_list(self, number: int) -> bool:
        """Whether a line that would have fitted above is a paragraph, below the last of items of one line."""
        *items, line = self.lines[max(number - 2, 0) : number + 1]
        rest = takewhile(lambda one: not one.after_blank, self.lines[number + 1 : number + _CELLS_AHEAD])
        are_items = not items[-1].after_blank and all(marks.ITEM.match(one.words) for one in items)
        is_new = line.words[0].isalpha() and not line.words[0].islower() and fits_above(items[-1], line)
        return are_items and is_new and not any(marks.ITEM.match(f"{one.words} ") for one in rest)

    def _goes_on(self, line: Line) -> bool:
        return not line.after_blank or line.indent >= max(self.indent, 1)

    def _is_item(self, number: int) -> bool:
        """Whether a line that looks like an item is one: no sentence with "I." or "A)", not "г. Тверь"."""
        line = self.lines[number]
        following = self.lines[number + 1].words if number + 1 < len(self.lines) else ""
        is_plain = self.kind == "item" or line.words[0] in "-*+•‣▪◦·–・" or line.words[0].isdigit()
        may_head = is_plain or (marks.NUMBERED.match(line.words) and not following[:1].islower())
        if line.after_blank and may_head and self._heading_level(number) > 0:
            return False
        is_apart = line.after_blank and (self.colon or line.words[0].isascii() or line.words[1] != ".")
        is_listed = self.colon and self.marks != []
        return is_plain or is_apart or is_listed or marks.ITEM.match(following) is not None

    def _title(self, number: int) -> tuple[BlockKind, int, int] | None:
        """A title with its adornment, or the head of a mail: its kind, level and number of lines."""
        line, rest = self.lines[number], self.lines[number + 1 : number + 3]
        if line.start in self.mail_heads:
            end = bisect_left(self.lines, self.mail_heads[line.start], key=lambda after: after.start)
            return "heading", 1, end - number
        if line.after_blank and marks.MANUAL_HEAD.match(line.words):
            return "heading", 1, 1
        is_first = line.after_blank or line.words[0] == "\\"
        if is_first and (marked := marks.MARKED_TITLE.match(line.words)) and (marked[1] != "=" or not number):
            level = marked[1].count("=") or 2 + marked[1].count("sub")
            return "heading", int(marked[1][-1]) if marked[1][-1:].isdigit() else level, 1
        level = self.counted.get(number) or (number in self.numbered and self._heading_level(number))
        if level and self._heads(number):
            is_outermost = level == LEVEL_OF_NUMBERS and in_capitals(line.words)
            return "heading", _LEVEL_OF_CAPITALS if is_outermost else level, 1
        if _SECTION.fullmatch(line.words) and self._heads(number) and self._is_above_setting(number):
            is_part = f"[[{line.words.strip('[]').rpartition('.')[0]}]]" in self.lists
            return "heading", _SHORT + is_part, 1 + line.words.startswith("[[")
        if banner := marks.BANNER.match(line.words):
            return "heading", self._style(2 * banner[1], True, line, line), 1
        if marks.ADORNMENT.match(line.words):
            is_title = len(rest) > 1 and not (rest[0].after_blank or rest[1].after_blank)
            is_title = is_title and _are_around(line.words, *(one.words for one in rest))
            level = self._style(line.words[0], True, *rest) if is_title else 0
            return ("heading", level, 3) if level else None
        is_head = len(rest) > 1 and marks.COLUMNS.match(line.words) and marks.COLUMNS.match(rest[1].words)
        is_title = line.after_blank and len(line.words) <= 2 * LONGEST_HEADING and not is_head
        under = rest[0].words if is_title and rest and not rest[0].after_blank else ""
        is_adorned = 0.7 * len(line.words) <= len(under) and marks.ADORNMENT.match(under)
        if is_adorned and (level := self._style(under[0], False, line, rest[-1])):
            return "heading", level, 2
        level = _SHORT if self.is_play else _LEVEL_OF_CAPITALS
        return ("heading", level, 1) if self._is_in_capitals(number) else None

    def _listing(self, number: int) -> tuple[BlockKind, int, int] | None:
        """A listing, or a heading of Org; the hunk of a diff, or the name of its file."""
        line, end = self.lines[number], self.listings.get(number)
        if (hunk := _HUNK.match(line.words)) and not line.indent:
            below = map(self.lines.__getitem__, range(number + 1, len(self.lines)))
            n_below = sum(1 for _ in takewhile(lambda one: one.indent or one.words[0] in "+-\\", below))
            return ("heading", 1, 1) if hunk[1] else ("code", 0, 1 + n_below)
        stars = _STARS.match(line.words) if self.is_org and not line.indent else None
        return ("code", 0, end + 1 - number) if end else ("heading", stars.end(), 1) if stars else None

    def _is_above_setting(self, number: int) -> bool:
        """Whether the first line below that is no other comment and no section is a setting."""
        words = (line.words for line in self.lines[number + 1 : number + _CELLS_AHEAD])
        return any(map(_SETTING.match, islice(filterfalse(_PASSED.match, words), 1)))

    def _style(self, mark: str, over: bool, title: Line, below: Line) -> int:
        words, number = title.words, marks.NUMBERED.match(title.words)
        is_drawing = words.count(" ") > 1 and not any(map(str.isalpha, words))
        if is_drawing or mark == "#" in (words[0], "" if over else below.words[0]):
            return 0  # no title, but a comment in a banner
        level = number[0].count(".", 0, -1) + 2 if number and words[0].isdigit() else len(self.styles) + 1
        return self.styles.setdefault((mark, over), min(level, _LEVEL_OF_CAPITALS - 1))

    def _table(self, number: int) -> tuple[BlockKind, int, int] | None:
        """A table: its kind, level and number of lines."""
        line = self.lines[number]
        is_code = (self.kind == "code" and self._goes_on(line)) or line.words.startswith(_PROMPTS)
        n_lines = 0 if is_code else table_end(self.lines, number) - number
        return ("table", 0, n_lines) if n_lines else None

    def _loose_cells(self, number: int) -> tuple[BlockKind, int, int] | None:
        """Cells of a table that are paragraphs, as some readers of Word write them, up to the end of a row.

        A row is taken to end with a value. Where its columns are is not known.
        """
        if self.cells_end <= number < self.no_cells:
            return None
        run = [*takewhile(_is_cell, self.lines[number : number + _CELLS_AHEAD])]
        values = [_VALUE.fullmatch(line.words) is not None for line in run]
        if number >= self.cells_end and (len(run) < _FEWEST_CELLS or 4 * sum(values) < len(run)):
            self.no_cells = number + max(len(run) // 4, 1)
            return None
        self.cells_end = number + len(run)
        ends = (place for place, pair in enumerate(pairwise(values), 1) if pair == (True, False))
        long = (place for place in ends if run[place].start - run[0].start > _CHARACTERS_OF_CELLS)
        return ("code", 0, next(long, len(run))) if run else None

    def _directive(self, number: int) -> tuple[BlockKind, int, int] | None:
        """A reStructuredText directive, with its fields above an indented text, or with its code."""
        line = self.lines[number]
        if not line.words.startswith("..") or marks.DIRECTIVE.match(line.words) is None:
            return None
        end = number + 1
        if line.words[2:].split("::")[0].strip() not in _CODE_DIRECTIVES:
            end = run_end(self.lines, number, lambda row: _FIELD.match(row) is not None)
            is_above = number + 1 < end < len(self.lines) and self.lines[end].indent > line.indent
            return ("item", 1 + line.indent // 2, end - number) if is_above else ("paragraph", 0, 1)
        while end < len(self.lines) and self.lines[end].indent > line.indent:
            end += 1
        return "code", 0, end - number

    def _heads(self, number: int) -> bool:
        """Whether a line may be a heading: below no term, and centred or not right of the line below it."""
        line, *below = self.lines[number : number + 2]
        beside = (abs(line.indent + line.end - after.indent - after.end) for after in below)
        is_left = all(line.indent <= after.indent for after in below)
        return self.term == _NO_TERM and (is_left or line.indent > _MIDDLE > max(beside))

    def _heading_level(self, number: int) -> int:
        """The level of a line that is a heading by its words alone; 0 or, if it may be one, less without."""
        line = self.lines[number]
        is_name = line.words[0].isalnum() and in_capitals(line.words)
        words = line.words.removesuffix(":") if is_name else line.words
        is_apart = number in self.numbered or (line.after_blank and line.before_blank)
        if not is_apart or len(words) > LONGEST_HEADING or not self._heads(number):
            return 0
        asks = words[-1] in ASKING and (number in self.numbered or LONG_NUMBER.match(words) is not None)
        if not asks and (words.rstrip("\"'”’»)]*）」』").endswith(STOP) or has_two_sentences(words)):
            return 0
        following = self.lines[number + 1] if number + 1 < len(self.lines) else None
        if following is None or not any(letter.isalpha() for letter in words):
            return 0
        if (match := marks.NUMBERED.match(words)) is not None:
            is_above_item = marks.ITEM.match(following.words) is not None
            last = words.split()[-1]
            if is_above_item and "," in words and len(last) <= _SMALL_WORD and last.islower():
                return 0
            is_list = is_above_item and number not in self.numbered
            if is_list and words[0].isdigit() and not any(map(LONG_NUMBER.match, (words, following.words))):
                return 0
            deeper = self.deepest + match[0].rstrip(".").count(".")
            return deeper if words[0].isdigit() else LEVEL_OF_NUMBERS
        if not has_case(words):
            return 0
        if in_capitals(words) and sum(map(str.isalpha, words)) >= _FEWEST_LETTERS:
            return _LEVEL_OF_CAPITALS
        level = _SHORT if len(following.words) >= _LONG_LINE else -_SHORT
        return level * self._may_be_short_title(number, following)

    def _may_be_short_title(self, number: int, following: Line) -> bool:
        """Whether a short line may be a title without any mark: no name below a mail, no label and value."""
        line = self.lines[number]
        is_sub = self.kind == "heading" and not any(map(str.isdigit, line.words))
        before = self.lines[number - 1].words if number and not is_sub else ""
        return (
            (line.words[0].isupper() and not _NO_TITLE.search(line.words))
            and 0 < self.occurs[running_key(line.words)] < RUNNING_LINES
            and len(line.words.split()) <= 8
            and (not before or before.endswith((*STOP, ")", '"', "”", "'")))
            and following.indent <= line.indent
            and not any(after.words[0] == ">" for after in self.lines[number + 1 : number + 4])
        )
