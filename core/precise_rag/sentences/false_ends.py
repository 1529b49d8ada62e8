"""Marks that end no sentence: of ordinals and abbreviations, operators, and what is in code or a tag."""

import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import chain

from precise_rag._data import packaged_toml

_ORDINAL = re.compile(
    r"(?<![\w.,])(?:(?:[Dd](?:ie|er|as|e[nms])|[zv]om|zu[rm]|beim|[Ii]m|(?<!I )am|jede[rsnm]?)\s+\d{1,3}\."
    r"\s+(?=[A-ZÄÖÜ])|\d{1,2}\.\s+(?=(?:Januar|Jänner|Februar|März|April|Mai|Juni|Juli|August|September|Oktober"
    r"|November|Dezember|Jahrhundert|Jahrtausend|Weltkrieg|Stock|Etage|Quartal|Halbjahr)(?:s|es)?\b)"
    r"|\d{1,4}\. (?=\d{1,2}\.(?!\d)|§)|(?<=\d\. )\d{1,2}\. (?=[가-힣(]|\d{4}(?!\d)))"
)
"""A German ordinal, or a number of a date such as "2026. 5. 3.", whose point ends no sentence."""


def _abbreviations(by_language: Mapping[str, Sequence[str]], flags: str = "") -> re.Pattern[str]:
    words = "|".join(chain.from_iterable(by_language.values()))
    return re.compile(rf"(?<![^\W\d_])(?{flags}:{words})\.\Z")


_ABBREVIATIONS = packaged_toml("sentences/abbreviations.toml")
_BEFORE_NUMBER = _abbreviations(_ABBREVIATIONS["before_number"], "i")
_NUMBER = re.compile(r"\+?\d|§|[A-Z]\.|[IVXLC]{2,7}\b")
_CONSONANTS = "b-df-hj-npr-tv-xzßçćčďğłńňñřśšșťțźżžбвгджзйклмнпрстфхцчшщβγδζθκλμνξπρσφχψ"
_TITLE = re.compile(
    rf"(?:(?:\A|[.!?…]\s+)(?:[^\W\d_]{{1,5}}\s)?|[^\w\s.+-]\s*|(?<!\S)[^\W\dA-Z_][^\W\d_]*\s)[{_CONSONANTS.upper()}][{_CONSONANTS}](?<![mмg])\.\Z"
)
"""Two letters such as "St." that begin a sentence or follow a small word; not "5 Hz.", "Doe Jr." or "Hm."."""
_SHORT = re.compile(r"(?<!\w)(?:[^\W\d_]{1,4}|\d{1,4}|[IVXLCDM]+)\.\Z")
_CUT_SHORT = re.compile(rf"(?<![\w'’-])[^\W\d_A-ZА-ЯЁ]{{0,3}}[{_CONSONANTS}]\.\Z")
_CUT = re.compile(rf"[{_CONSONANTS}]\.\Z")
"""A short word or a number, a small one cut behind a consonant, and any so cut. Before a small letter, or the
second of these before a digit, no sentence ends."""
_WORD_BEGINS = r"(?<![\w\u0300-\u0dff])"
_SYLLABLE = r"[\u0c00-\u0d7f](?:[^\w\s.](?:(?<=[\u0c4d\u0ccd\u0d4d])\w)?){1,7}"
_INITIAL = rf"[\u0e00-\u0eff]\.\Z|{_WORD_BEGINS}(?<![\"'״׳])(?:[\u05d0-\u0dff]ـ?|{_SYLLABLE})\.\Z"
"""A letter of a script without capitals, a syllable of Telugu, Kannada or Malayalam, any of Thai or Lao."""
_NEVER_LAST = re.compile(f"{_abbreviations(_ABBREVIATIONS['never_last']).pattern}|{_INITIAL}")
_BESIDE_DANDA = re.compile(r"[\u0900-\u0dff]\.\Z")
_IN_WORD = re.compile(rf"{_WORD_BEGINS}(?:[^\W\d_]ـ?[^\w\s.,]{{0,3}}){{1,3}}\.\Z")
_AFTER_POINT = re.compile(r"\.(?:(?<=[^\W\d_]{4}[^\W\d_IVXLCDM].)\s+([^\W\d_])|\s+([^\W\d_]))")
"""The first letter after a point, that of a long word or another."""
_NOT_ENGLISH = re.compile(r"[^\W\d_a-zA-Z]")
_GOES_ON = re.compile(
    r"(?s:.?[」』”’»\"']\s*(?:と(?!にかく|ころ|ても)|って|道(?!路)|\w{0,6}(?<!知)[说說道问問答喊叫][，。：]|[他她我你它]?们?[说說]|(?:이?라|하)?고\s|قالت?\s).*)|\d[.．｡]\d(?s:.*)"
    r"|(?s:(?:.?[”“»\"]\s+(?:[–—-]\s)?|.{1,2}\s?[–—]\s?|.?\S[^\S\n]-\s)[a-zß-žά-ώа-џґ].*)"
)
"""A quote or dash before the words that name who spoke, and a point between digits."""
_NO_BEGINNING = re.compile(
    r"[)\]»”\"']{0,3}(?:[,:;](?=\s)|[，：；、،؛])|[)\]](?=[,:; ])|\((?=[a-zа-џґ]{3})"
    r"|\[-(?=\w)|(?<=\S)(?:[:|/\\=&+]|\*(?!\w))"
)
"""Marks that no sentence begins with, some only without a space before them, as in "127.*|10.*"."""
_QUOTED_ITEM = re.compile(r"(?:^|\n)[ \t]{0,40}>[ \t>]{0,20}\d{1,3}\.\s+\Z")
"""The number of a list item in a quote, whose point ends no sentence."""
TAGS = r"(?:\s{0,40}<[^<>]{1,300}>){0,9}+\s{0,99}+"
"""Tags before the words of a block of HTML."""
_COUNTED = re.compile(rf"{TAGS}(?:([^\W\d_])[^\s\d.,:;!?()]{{1,20}} |§ ?|(?=\d+\.\d))(?:\d{{1,4}}\.)+[ \t]+")
"""A word with a number before a title: "Artículo 3. Multas"."""
_CODE = re.compile(r"(?<![\w`])(`{1,2})(?![\s`])[^`]{0,200}?(?<!\s)\1(?![\w`])|<[A-Za-z/][^<>]{0,500}>")
"""Code among words, or a tag: no sentence ends within it."""
_OPERATOR = re.compile(r"(?:\A|[\s(\[])\.*+[?!][?!.]*+\Z|[*+)\]}\\$][?!]\Z")
"""A mark that stands alone or follows one of code. Before a small letter or another mark it ends nothing."""
_LEADERS = re.compile(r"(?:\s\.{5,8}|\.{9}|(?:\s\.){5})\Z")
"""Dots between a name and its value on a line: "Soup ........ Tomato"."""


class FalseEnds:
    """The places in a block at which a library ends a sentence although none ends."""

    def __init__(self, block: str) -> None:
        self._block = block
        code = _CODE.finditer(block) if "`" in block or "<" in block else ()
        self._never_last = [_NEVER_LAST, *[_BESIDE_DANDA] * ("।" in block)]
        self._in_code = [place for match in code for place in match.span()]

    @cached_property
    def _is_english(self) -> bool:
        return 100 * len(_NOT_ENGLISH.findall(self._block)) < len(self._block)

    @cached_property
    def _before_small(self) -> list[re.Pattern[str]]:
        """What has no end before a small letter: nothing if sentences begin with one, as in a chat."""
        firsts = _AFTER_POINT.findall(self._block)
        most = 0 if self._is_english else 2 + 2 * sum("".join(letters).isupper() for letters in firsts)
        is_small = self._block.lstrip()[:1].islower() or sum(letter.islower() for letter, _ in firsts) > most
        return [] if is_small else [_SHORT, *[_CUT] * (not self._is_english)]

    def has(self, end: int, following: int) -> bool:
        """Check whether the mark before `end` ends no sentence; the next word begins at `following`."""
        block = self._block
        place = bisect_left(self._in_code, end)
        return (
            (place % 2 == 1 and self._in_code[place] != end)
            or _NO_BEGINNING.match(block, following) is not None
            or self._is_in_number(end, following)
            or self._is_abbreviated(end, following)
            or self._is_operator(end, following)
            or _LEADERS.search(block[max(end - 20, 0) : following].rstrip(" \t")) is not None
            or _GOES_ON.fullmatch(block[max(end - 2, 0) : following + 8]) is not None
        )

    def _is_in_number(self, end: int, following: int) -> bool:
        """Whether the end of a sentence is the point of an ordinal, or of a number that begins a line."""
        block, first = self._block, max(end - 16, 0)
        words = block[first:following].rstrip()
        if not words.endswith(".") or not words[-2:-1].isdigit():
            return False
        if any(match.end() == following for match in _ORDINAL.finditer(block, first, following + 16)):
            return True
        counted = _COUNTED.match(block)
        is_counted = counted and counted.end() == following and (word := counted[1] or "") == word.title()
        return bool(is_counted or _QUOTED_ITEM.search(block, max(end - 70, 0), following))

    def _is_abbreviated(self, end: int, following: int) -> bool:
        """Whether the end of a sentence is the point of an abbreviation within it, or inside a word."""
        block, first = self._block, max(end - 16, 0)
        last = first + len(block[first:following].rstrip())
        if block[last - 1] != ".":
            return False
        after, patterns = block[following : following + 1], [*self._never_last]
        if after.islower() and block[following + 1 : following + 2] != ")":
            patterns += self._before_small if last < following else [_SHORT]
        patterns += [_TITLE] * block[max(last - 3, 0) : last - 2].isupper()
        patterns += [_IN_WORD] * (after.isalpha() and last == following)
        patterns += [_BEFORE_NUMBER] * bool(_NUMBER.match(block, following))
        patterns += [_CUT_SHORT] * (after.isdigit() and not self._is_english)
        return any(pattern.search(block, first, last) for pattern in patterns)

    def _is_operator(self, end: int, following: int) -> bool:
        """Whether the mark before the end is an operator, not the end of a question or a call."""
        after = self._block[following : following + 1]
        goes_on = after.islower() or after in tuple(":=[.&|")
        return goes_on and _OPERATOR.search(self._block[max(end - 8, 0) : end].rstrip()) is not None
