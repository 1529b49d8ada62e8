"""The macros of manual pages in `mdoc`, as BSD, OpenSSH and others write them."""

from __future__ import annotations

from collections.abc import Callable

from precise_rag.documents.manual_page import Page

_PLAIN = frozenset(
    (
        *("Ad", "An", "Cd", "Cm", "Dv", "Em", "Er", "Ev", "Fa", "Fd", "Fr", "Ft", "Ic", "In", "Li", "Lk"),
        *("Ms", "Mt", "No", "Pa", "Sx", "Sy", "Tn", "Va", "Vt"),
    )
)
"""Macros whose arguments are written as they are."""
_ENCLOSING = {
    "Op": ("[", "]"), "Oo": ("[", ""), "Oc": ("", "]"), "Pq": ("(", ")"), "Po": ("(", ""), "Pc": ("", ")"),
    "Bq": ("[", "]"), "Bo": ("[", ""), "Bc": ("", "]"), "Brq": ("{", "}"), "Bro": ("{", ""),
    "Brc": ("", "}"), "Aq": ("<", ">"), "Ao": ("<", ""), "Ac": ("", ">"), "Sq": ("‘", "’"), "So": ("‘", ""),
    "Sc": ("", "’"), "Dq": ("“", "”"), "Do": ("“", ""), "Dc": ("", "”"), "Qq": ('"', '"'), "Qo": ('"', ""),
    "Qc": ("", '"'), "Ql": ("‘", "’"),
}  # fmt: skip
_SYSTEMS = {"Ux": "UNIX", "Bx": "BSD", "Fx": "FreeBSD", "Nx": "NetBSD", "Ox": "OpenBSD", "At": "AT&T UNIX"}
_CLOSING = frozenset(".,:;)]?!")
_OPENING = frozenset("([")


class Mdoc:
    """Reads the macros of a page and writes them to it."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._name = ""
        self._lists: list[bool] = []
        """For each open list, whether its items have terms."""
        self._is_synopsis = False

    def read(self, name: str, words: list[str]) -> None:
        """Do what a macro says."""
        if (act := _BLOCKS.get(name)) is not None:
            act(self, words)
        else:
            if name == "Nm" and self._is_synopsis:
                self._page.start_line()
            self._page.add_line(self._line([name, *words]))

    def _nothing(self, words: list[str]) -> None:
        pass

    def _name_page(self, words: list[str]) -> None:
        self._page.set_name(words)

    def _describe(self, words: list[str]) -> None:
        self._page.add_line(f"— {' '.join(words)}")

    def _section(self, words: list[str], *, is_part: bool = False) -> None:
        title = self._page.plain(self._line(words))
        self._is_synopsis = title == "SYNOPSIS"
        self._page.title(title, is_part=is_part)

    def _part(self, words: list[str]) -> None:
        self._section(words, is_part=True)

    def _paragraph(self, words: list[str]) -> None:
        self._page.end_paragraph()

    def _begin_list(self, words: list[str]) -> None:
        if self._lists:
            self._page.deeper()
        self._lists.append(not _WITH_TERMS.isdisjoint(words))

    def _item(self, words: list[str]) -> None:
        has_term = bool(words) or not self._lists or self._lists[-1]
        self._page.tag(self._page.plain(self._line(words)) if has_term else "•")

    def _end_list(self, words: list[str]) -> None:
        if self._lists:
            self._lists.pop()
        if self._lists:
            self._page.back()
        else:
            self._page.paragraph()

    def _begin_display(self, words: list[str]) -> None:
        self._page.set_verbatim("-literal" in words or "-unfilled" in words)

    def _end_display(self, words: list[str]) -> None:
        self._page.set_verbatim(False)

    def _line(self, words: list[str]) -> str:
        """The text of a line whose words are macros, arguments and punctuation."""
        line = _Line(words, self._name)
        text = line.text()
        self._name = line.name
        return text


_BLOCKS: dict[str, Callable[[Mdoc, list[str]], None]] = {
    **dict.fromkeys(("Dd", "Os", "Bk", "Ek"), Mdoc._nothing),
    **dict.fromkeys(("Pp", "Lp"), Mdoc._paragraph),
    "Dt": Mdoc._name_page,
    "Nd": Mdoc._describe,
    "Sh": Mdoc._section,
    "Ss": Mdoc._part,
    "Bl": Mdoc._begin_list,
    "It": Mdoc._item,
    "El": Mdoc._end_list,
    "Bd": Mdoc._begin_display,
    "Ed": Mdoc._end_display,
}
_WITH_TERMS = frozenset(("-tag", "-hang", "-inset", "-ohang", "-diag"))


class _Line:
    """The words of a line, read from the first to the last. name: of the program, from earlier lines."""

    def __init__(self, words: list[str], name: str) -> None:
        self.name = name
        self._waiting = words[::-1]
        self._parts: list[str] = []
        self._is_glued = False
        self._open: list[str] = []
        """Brackets that the end of the line closes, the innermost last."""

    def text(self) -> str:
        """Read all words, and return what is written."""
        while self._waiting:
            word = self._waiting.pop()
            if word in _INLINE:
                _INLINE[word](self)
            elif word in _ENCLOSING:
                self._enclose(*_ENCLOSING[word])
            elif word in _SYSTEMS:
                self._add(_SYSTEMS[word])
            elif word in _CLOSING:
                if not self._waiting:
                    self._close()
                self._add(word, is_tight=True)
            elif word not in _PLAIN:
                self._add(word)
                self._is_glued = word in _OPENING
        self._close()
        return "".join(self._parts)

    def _add(self, text: str, *, is_tight: bool = False) -> None:
        if self._parts and not self._is_glued and not is_tight and text:
            self._parts.append(" ")
        self._parts.append(text)
        self._is_glued = False

    def _close(self) -> None:
        while self._open:
            self._add(self._open.pop(), is_tight=True)

    def _argument(self) -> str:
        """Take the next word if it is neither a macro nor punctuation; otherwise return nothing."""
        following = self._waiting[-1] if self._waiting else ""
        return (
            "" if _is_macro(following) or following in _CLOSING else self._waiting.pop() if following else ""
        )

    def _flag(self) -> None:
        argument = self._argument()
        self._add(f"-{argument}")
        self._is_glued = not argument and bool(self._waiting) and self._waiting[-1] not in _CLOSING

    def _program(self) -> None:
        argument = self._argument()
        self.name = self.name or argument
        self._add(argument or self.name)

    def _reference(self) -> None:
        page, section = self._argument(), self._argument()
        self._add(f"{page}({section})" if section else page)

    def _function(self) -> None:
        name, given = self._argument(), []
        while argument := self._argument():
            given.append(argument)
        self._add(f"{name}({', '.join(given)})")

    def _operand(self) -> None:
        self._add(self._argument() or "file ...")

    def _glue(self) -> None:
        self._is_glued = True

    def _apostrophe(self) -> None:
        self._add("'", is_tight=True)
        self._is_glued = True

    def _prefix(self) -> None:
        self._add(self._argument())
        self._is_glued = True

    def _enclose(self, begin: str, end: str) -> None:
        if begin:
            self._add(begin)
            self._is_glued = True
        if begin and end:
            self._open.append(end)
        elif end:
            self._add(end, is_tight=True)


_INLINE: dict[str, Callable[[_Line], None]] = {
    "Fl": _Line._flag,
    "Nm": _Line._program,
    "Xr": _Line._reference,
    "Fn": _Line._function,
    "Ar": _Line._operand,
    "Ns": _Line._glue,
    "Ap": _Line._apostrophe,
    "Pf": _Line._prefix,
}


def _is_macro(word: str) -> bool:
    return word in _PLAIN or word in _ENCLOSING or word in _INLINE
