"""Marks that end no sentence: of ordinals and abbreviations, operators, and what is in code or a tag."""

import re
from bisect import bisect_left

_ORDINAL = re.compile(
    r"(?<![\w.,])\d{1,2}\.\s+(?=(?:Januar|Jänner|Februar|März|April|Mai|Juni|Juli|August|September|Oktober|November"
    r"|Dezember|Jahrhundert|Jahrtausend|Weltkrieg)(?:s|es)?\b)"
)
"""A German ordinal, whose point ends no sentence."""

_NEVER_LAST = re.compile(
    r"(?<![^\W\d_])(?:z\.\s?B|d\.\s?h|bzw|vgl|ca|Nr|evtl|ggf|inkl|zzgl|p\.\s?ej|núm|pág|Srta"
    r"|т\.\s?е|т\.\s?к|кв|куб|ул|им|стр|табл|напр)\.\Z"
)
_SELDOM_LAST = re.compile(
    r"(?<![^\W\d_])(?:u\.\s?a|o\.\s?ä|usw|usf|etc|Jh|Mio|Mrd"
    r"|гг?|вв?|др|т\.\s?д|т\.\s?п|э|млн|млрд|тыс|руб|долл|см|км|кг)\.\Z"
)
"""German, Spanish and Russian abbreviations: after the first no sentence ends, after the others none does
before a small letter."""

_QUOTED_ITEM = re.compile(r"(?:^|\n)[ \t]{0,40}>[ \t>]{0,20}\d{1,3}\.\s+")
"""The number of a list item in a quote, whose point ends no sentence."""

_CODE = re.compile(r"(?<![\w`])(`{1,2})(?![\s`])[^`]{0,200}?(?<!\s)\1(?![\w`])|<[A-Za-z/][^<>]{0,500}>")
"""Code among words, or a tag: no sentence ends within it."""
_OPERATOR = re.compile(r"(?:\A|[\s(])\.*+[?!][?!.]*+\Z|[*+)\]}\\$][?!]\Z")
"""A mark that stands alone or follows one of code. Before a small letter or another mark it ends nothing."""
_MARKS_OF_CODE = ":=[.&|"
"""Marks that may follow an operator."""


def code_places(block: str) -> list[int]:
    """Return where code among words and tags begin and end in a block, in turn."""
    if "`" not in block and "<" not in block:
        return []
    return [place for match in _CODE.finditer(block) for place in match.span()]


def ends_nothing(block: str, end: int, following: int, in_code: list[int]) -> bool:
    """Check whether the mark before `end`, where a library ends a sentence, ends none.

    following: where the next word begins. in_code: from `code_places`.
    """
    place = bisect_left(in_code, end)
    return (
        (place % 2 == 1 and in_code[place] != end)
        or _is_in_number(block, end, following)
        or _is_abbreviated(block, end, following)
        or _is_operator(block, end, following)
    )


def _is_in_number(block: str, end: int, following: int) -> bool:
    """Whether the end of a sentence is the point of an ordinal or of a quoted item's number.

    following: where the next word begins.
    """
    words = block[max(end - 8, 0) : following].rstrip()
    if not words.endswith(".") or not words[-2:-1].isdigit():
        return False
    match = _ORDINAL.search(block, max(end - 8, 0), following + 16)
    if match is not None and match.end() == following:
        return True
    line = block.rfind("\n", max(end - 70, 0), end)
    return _QUOTED_ITEM.fullmatch(block, max(line, 0), following) is not None


def _is_abbreviated(block: str, end: int, following: int) -> bool:
    """Whether the end of a sentence is the point of an abbreviation within it, or inside a word.

    following: where the next word begins.
    """
    words = block[max(end - 12, 0) : following].rstrip()
    if not words.endswith(".") or words[-6:-1].isalpha():  # no abbreviation here is so long
        return False
    is_small = block[following : following + 1].islower()
    if is_small and (block[following - 1] == "." or _SELDOM_LAST.search(words) is not None):
        return True
    return _NEVER_LAST.search(words) is not None


def _is_operator(block: str, end: int, following: int) -> bool:
    """Whether the mark before the end of a sentence is an operator, not the end of a question or a call.

    following: where the next word begins.
    """
    after = block[following : following + 1]
    if not (after.islower() or after in _MARKS_OF_CODE) or not after:
        return False
    return _OPERATOR.search(block[max(end - 8, 0) : end].rstrip()) is not None
