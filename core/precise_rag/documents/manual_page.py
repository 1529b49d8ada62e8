"""The lines of a manual page as `man` writes them, and what the macros of `man` add to them."""

from __future__ import annotations

import re
from collections.abc import Callable

_INDENT = 7
_DEEPER = 7
"""White space before text, and what a list or `.RS` adds."""
_PART_INDENT = 3
_MOST_INDENT = 70
_MOST_OF_STRINGS = 1_000_000
"""Characters that the strings (`.ds`) of a page may add: strings hold strings, and would grow without end."""
_MOST_COLUMNS = 200
"""Of a table, to which shorter rows are filled."""
_CHARACTERS = {
    "em": "—", "en": "–", "hy": "-", "mi": "-", "bu": "•", "aq": "'", "dq": '"', "lq": "“", "rq": "”",
    "oq": "‘", "cq": "’", "co": "©", "rg": "®", "tm": "™", "ha": "^", "ti": "~", "rs": "\\", "ga": "`",
    "aa": "´", "->": "→", "<-": "←", "<=": "≤", ">=": "≥", "!=": "≠", "mu": "×", "+-": "±", "de": "°",
    "lB": "[", "rB": "]", "lC": "{", "rC": "}", "la": "<", "ra": ">", "ba": "|", "bv": "|", "sl": "/",
    "at": "@", "sh": "#", "Do": "$", "*W": "Ω", "12": "½", "14": "¼", "34": "¾", "Fo": "«", "Fc": "»",
    "ss": "ß", ":a": "ä", ":o": "ö", ":u": "ü", ":A": "Ä", ":O": "Ö", ":U": "Ü", "'e": "é", "'a": "á",
    "`e": "è", "`a": "à", "^e": "ê", ",c": "ç", "~n": "ñ", "'o": "ó", "'i": "í", "'u": "ú", "/o": "ø",
}  # fmt: skip
_PLAIN = {"-": "-", "e": "\\", " ": " ", "~": " ", "0": " ", "t": "\t", "'": "'", "`": "`", ".": "."}
_ESCAPE = re.compile(
    r"\\(?:\(?(?P<font>f)(?:\(..|\[[^\]]{0,20}\]|.)|\((?P<two>..)|\[(?P<name>[^\]\n]{1,40})\]"
    r"|\*(?:\((?P<string2>..)|\[(?P<string>[^\]\n]{1,40})\]|(?P<string1>.))"
    r"|[nFgkmMV](?:\(..|\[[^\]\n]{0,40}\]|[+-]?.)|s(?:\((?:[+-])?..|\[[^\]\n]{0,9}\]|[+-]?\d\d?|'[^'\n]{0,9}')"
    r"|[hvwxXNolLDbCBAZ]'[^'\n]{0,200}'|(?P<one>.)|$)"
)
_UNICODE = re.compile(r"u([0-9A-F]{4,6})\Z")
_BLOCK_CELL = re.compile(r"T\{((?:(?!T\{).)*?)T\}", re.DOTALL)


class Page:
    """The lines of a page as they are written, with their indents."""

    def __init__(self, strings: dict[str, str]) -> None:
        self._strings = strings
        self._left_of_strings = _MOST_OF_STRINGS
        self._lines: list[str] = []
        self._words: list[str] = []
        """Of the paragraph that is being read."""
        self._outer = [0]
        """Indents that `.RS` added, the innermost last."""
        self._hang = 0
        self.verbatim = False
        self.table: list[str] | None = None
        self._awaits_tag = False
        self._is_open = False
        """Whether the last line is a title or a term, whose text comes."""
        self.name = ""
        """As "ls(1)"."""

    def text(self) -> str:
        """Return the whole page."""
        self.end_paragraph()
        return re.sub(r"\n{3,}", "\n\n", "\n".join(self._lines)).strip("\n") + "\n"

    def plain(self, text: str) -> str:
        """Return a text without escapes."""
        for _ in range(3):  # strings hold strings
            if "\\*" not in text:
                break
            text = _ESCAPE.sub(self._string, text)
        text = re.sub(r'\\["#].*', "", text)
        return _ESCAPE.sub(_character, text)

    def _string(self, match: re.Match[str]) -> str:
        name = match["string2"] or match["string"] or match["string1"]
        if name is None:
            return match[0]
        self._left_of_strings -= len(string := self._strings.get(name, ""))
        return string if self._left_of_strings >= 0 else ""

    @property
    def indent(self) -> int:
        """White space before the text that comes."""
        return _INDENT + self._outer[-1] + self._hang

    def add_line(self, line: str) -> None:
        """Add a line of text."""
        if self.table is not None:
            self._table_line(line)
        elif self.verbatim:
            words = self.plain(line).rstrip()
            self._lines.append(" " * self.indent + words if words else "")
        elif not line.strip():
            self.end_paragraph()
        elif self._awaits_tag:
            self._awaits_tag = False
            self.tag(self.plain(line))
        else:
            self._words.append(self.plain(line).strip())

    def end_paragraph(self) -> None:
        """Write the paragraph that was read, and a blank line; none stands below a title or a term."""
        if words := " ".join(filter(None, self._words)):
            self._lines += [" " * self.indent + words, ""]
        elif self._lines and self._lines[-1] and not self._is_open:
            self._lines.append("")
        self._is_open = self._is_open and not words
        self._words = []

    def title(self, words: str, *, is_part: bool = False) -> None:
        """Write the title of a section, or of a part of one."""
        self.end_paragraph()
        self.verbatim, self._hang = False, 0
        self._outer = [0]
        if words := " ".join(words.split()):
            self._lines += ["", f"{' ' * _PART_INDENT * is_part}{words}"]
            self._is_open = True

    def tag(self, words: str) -> None:
        """Write a term; the text that comes says what it means, and is indented further."""
        self.end_paragraph()
        self._hang = 0
        self._lines.append(" " * self.indent + " ".join(words.split()))
        self._is_open = True
        self._hang = _DEEPER

    def deeper(self) -> None:
        """Indent what comes further."""
        self.end_paragraph()
        self._outer.append(min(self._outer[-1] + (self._hang or _DEEPER), _MOST_INDENT))
        self._hang = 0

    def back(self) -> None:
        """End the last indent."""
        self.end_paragraph()
        self._hang = 0
        if len(self._outer) > 1:
            self._outer.pop()

    def paragraph(self) -> None:
        """Begin a paragraph that is indented no further than the section."""
        self.end_paragraph()
        self._hang = 0

    def set_verbatim(self, on: bool) -> None:
        """Begin or end lines that stay as they are."""
        self.end_paragraph()
        self.verbatim = on

    def set_name(self, words: list[str]) -> None:
        """Take the name of the page and its section from the macro that begins it."""
        named = [self.plain(word).strip() for word in words[:2]]
        self.name = f"{named[0].lower()}({named[1]})" if len(named) == 2 and all(named) else "".join(named)

    def start_line(self) -> None:
        """Begin a line of its own."""
        if self._words:
            self._lines.append(" " * self.indent + " ".join(filter(None, self._words)))
            self._words, self._is_open = [], False

    def read(self, name: str, words: list[str]) -> None:
        """Do what a macro of `man` says."""
        if (act := _MACROS.get(name)) is not None:
            act(self, words)

    def wait_for_tag(self) -> None:
        """Take the next line as a term."""
        self.end_paragraph()
        self._awaits_tag = True

    def begin_table(self) -> None:
        """Take what comes as the rows of a table."""
        self.end_paragraph()
        self.table = []

    def _table_line(self, line: str) -> None:
        assert self.table is not None
        if line.startswith(".TE"):
            self._write_table(self.table)
            self.table = None
        else:
            self.table.append(line)

    def _write_table(self, lines: list[str]) -> None:
        """Write a table for tbl: its cells, with bars between them."""
        body = next((n + 1 for n, line in enumerate(lines) if line.rstrip().endswith(".")), len(lines))
        tab = re.search(r"tab\s*\((.)\)", lines[0]) if lines else None
        text = _BLOCK_CELL.sub(lambda match: " ".join(match[1].split()), "\n".join(lines[body:]))
        rows = [
            [self.plain(cell).strip() for cell in line.split(tab[1] if tab else "\t")]
            for line in text.split("\n")
            if line.strip(" _=") and not line.startswith(".")
        ]
        if rows:
            width = min(max(map(len, rows)), _MOST_COLUMNS)
            full = [row + [""] * (width - len(row)) for row in rows]
            full.insert(1, ["---"] * width)
            self._lines += [f"{' ' * self.indent}| {' | '.join(row)} |" for row in full]
            self._lines.append("")


def _character(match: re.Match[str]) -> str:
    if match["font"] or match["string1"] or match["string2"] or match["string"]:
        return ""
    name = match["two"] or match["name"]
    if name is not None:
        by_number = _UNICODE.match(name)
        return (
            chr(int(by_number[1], 16))
            if by_number and int(by_number[1], 16) < 0x110000
            else _CHARACTERS.get(name, "")
        )
    return _PLAIN.get(match["one"] or "", "")


def _item(page: Page, words: list[str]) -> None:
    if words and words[0]:
        page.tag(page.plain(words[0]))
    else:
        page.end_paragraph()


_MACROS: dict[str, Callable[[Page, list[str]], None]] = {
    "TH": Page.set_name,
    "SH": lambda page, words: page.title(page.plain(" ".join(words))),
    "SS": lambda page, words: page.title(page.plain(" ".join(words)), is_part=True),
    **dict.fromkeys(("PP", "P", "LP", "HP"), lambda page, words: page.paragraph()),
    **dict.fromkeys(("TP", "TQ"), lambda page, words: page.wait_for_tag()),
    **dict.fromkeys(("nf", "EX", "Vb"), lambda page, words: page.set_verbatim(True)),
    **dict.fromkeys(("fi", "EE", "Ve"), lambda page, words: page.set_verbatim(False)),
    **dict.fromkeys(("B", "I", "R", "SM", "SB", "SY"), lambda page, words: page.add_line(" ".join(words))),
    **dict.fromkeys(("BR", "BI", "IB", "IR", "RB", "RI"), lambda page, words: page.add_line("".join(words))),
    **dict.fromkeys(("UR", "MT"), lambda page, words: page.add_line("".join(words[:1]))),
    "OP": lambda page, words: page.add_line(f"[{' '.join(words)}]"),
    "IP": _item,
    "RS": lambda page, words: page.deeper(),
    "RE": lambda page, words: page.back(),
    "TS": lambda page, words: page.begin_table(),
    "YS": lambda page, words: page.end_paragraph(),
    "sp": lambda page, words: page.add_line(""),
    "br": lambda page, words: page.start_line(),
}
"""What the macros of `man` do; others, such as those for fonts on paper, do nothing."""
