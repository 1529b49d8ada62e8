"""Numbers, times and dates in one form each: 1,200 is 1200, 5 pm 17h00, and 3 May 2021 is 2021-05-03."""

import re
from collections.abc import Callable, Mapping
from functools import partial, reduce
from itertools import chain

from precise_rag._data import by_word, packaged_toml

ascii_digits = partial(re.compile(r"[^\D0-9]").sub, lambda digit: str(int(digit[0])))
"""Writes the digits of every script as 0 to 9."""
_NUMBER = re.compile(r"(?<![\d.,])(\d{1,3}(?:[,.'’\u00a0\u202f]\d{3})+)(?!\d)(?:[.,]00(?!\d))?")
_POWERS = {"k": 10**3, "t": 10**3, "m": 10**6, "b": 10**9}
_OTHERS = re.compile(
    r"(?<![\w.:,-])(?:(\d+(?:[.,]\d\d?)?)"
    r"(?:([kK]|bn)|[ -]([tT]housand|[tT]ausend|[mM]illion\w*|Mio|[bB]illion))\b"
    r"|(\d\d?)(?:[:.](\d\d))?[ \u00a0\u202f]?([aApP])\.?[mM]\b|(\d\d?):(\d\d)(?![\w:]|[.,]\d)"
    r"|(\+?(?:\(?\d{1,7}\)?[- /]){1,7}\d{1,7})(?![\w:]|[.,-]\d))"
)
"""A number with its power in a word, a time of twelve hours, one of 24, digits in groups as of telephones."""
_FEWEST_DIGITS = 9
_GLUED = re.compile(
    r"(?<![\w.:,-])(\d+(?:[.,]\d+)?)(?=(?:[kKMGT]i?B|[kcmµ]m|[kmµ]?g|k?V|mA|[kKMG]?Wh?|[kKMG]?Hz|ms|min|ml)\b)"
)
_ROMAN = re.compile(r"(?<=[^\W\d_] )(?=[IVX]{2}|[VX])(X{0,3})(IX|IV|V?I{0,3})(?![\w'’-])")
_UNITS = ("", "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX")
_WORDS = packaged_toml("stems.toml")
_MONTHS = {name: number for number, names in enumerate(_WORDS["months"], 1) for name in names.split()}
NUMBER_WORDS: Mapping[str, str] = by_word(_WORDS["numbers"])
"""The digits of the words that mean a number."""
_MONTH = r"([^\W\d_]{3,10})\b\.?"
_DAY = r"(\d\d?)(?:st|nd|rd|th|er|\.|º)?"
_DATES = (
    re.compile(
        r"(?<![\w.-])(?:(?P<ymd>(\d{4})[-./年](\d\d?)[-./月](\d\d?)日?(?!\d))"
        r"|(?P<dmy>(\d\d?)\.(\d\d?)\.(\d{4})\b)|(?P<dmy_or_mdy>(\d\d?)[-/](\d\d?)[-/](\d{4})\b)"
        rf"|(?P<dmy_worded>{_DAY}(?: of| de)? {_MONTH},?(?: de)? (\d{{4}})\b)"
        r"|(?P<ym>(\d{4})(?:[-/](\d\d)(?![\w/-])|年(\d\d?)月))|(?P<my>(\d\d?)/(\d{4})\b)"
        rf"|(?P<dm>{_DAY}(?: of| de)? {_MONTH}|(\d\d)\.(\d\d)\.(?!\d)))"
    ),
    re.compile(
        rf"(?<![\w.-])(?:(?P<mdy>{_MONTH} {_DAY},? (\d{{4}})\b)|(?P<my>{_MONTH},?(?: of| de)? (\d{{4}})\b)"
        rf"|(?P<md>{_MONTH} {_DAY}(?![\w.])))"
    ),
)
"""Dates, months of a year and days of one; the first letters of a group's name are the order of its parts."""
_DAY_OF_YEAR = re.compile(r"\d{4}-\d\d-\d\d")


def in_one_form(text: str) -> str:
    """Return a text with its numbers and dates written alike; 3/5/2021 may be of March or of May: both."""
    text = _OTHERS.sub(lambda one: _other(one) or one[0], _NUMBER.sub(_ungrouped, _read(text)))
    return _each_date(lambda date: " ".join(_iso(date)) or date[0], text)


def with_one_form(text: str) -> str:
    """Return a text for its words: numbers in groups, and dates, come with their one form.

    "3 May 2021" by 20210503, 202105 and 0503: the day, the month, and the day of any year.
    """
    text = _OTHERS.sub(lambda one: f"{_other(one)} {one[0]}".lstrip(), _read(text))
    return _each_date(_and_iso, _NUMBER.sub(lambda number: f"{number[0]} {_ungrouped(number)}", text))


def _read(text: str) -> str:
    """A text with ASCII digits, Roman numbers as Arabic ones, and a space before units."""
    text = _GLUED.sub(r"\1 ", ascii_digits(text))
    return _ROMAN.sub(lambda roman: f"{10 * len(roman[1]) + _UNITS.index(roman[2])}", text)


def _other(found: re.Match[str]) -> str:
    number, power, word, hour, minute, half, hour_of_24, minute_of_24, digits = found.groups()
    if number:
        return f"{float(number.replace(',', '.')) * _POWERS[(power or word)[0].lower()]:.0f}"
    if digits:
        joined = "".join(filter(str.isdigit, digits))
        return joined if len(joined) >= _FEWEST_DIGITS and not _DAY_OF_YEAR.match(digits) else ""
    if half:
        return f"{int(hour) % 12 + 12 * (half in 'pP'):02}h{minute or '00'}"
    return f"{int(hour_of_24):02}h{minute_of_24}"


def _each_date(written: Callable[[re.Match[str]], str], text: str) -> str:
    return reduce(lambda text, dates: dates.sub(written, text), _DATES, text)


def coarser(iso: str) -> tuple[str, ...]:
    """Return the month and the day of the year of what begins with a date: 2021-05, 05-03; or nothing."""
    return (iso[:7], iso[5:10]) if _DAY_OF_YEAR.match(iso) else ()


def _and_iso(date: re.Match[str]) -> str:
    forms = chain.from_iterable((iso, *coarser(iso)) for iso in _iso(date))
    return " ".join((*(form.replace("-", "") for form in forms), date[0]))


def _ungrouped(number: re.Match[str]) -> str:
    return "".join(filter(str.isdigit, number[1]))


def _iso(date: re.Match[str]) -> list[str]:
    """A date in ISO 8601; two where day and month may be exchanged, none for a day that no calendar has."""
    order = date.lastgroup or ""
    part = dict(zip(order, [one for one in date.groups() if one][1:], strict=False))
    month = int(part["m"]) if part["m"].isdecimal() else _MONTHS.get(part["m"].lower(), 0)
    day = int(part.get("d", 0))
    pairs = [(month, day), (day, month)] if order == "dmy_or_mdy" else [(month, day)]
    return [
        "-".join(filter(None, (part.get("y"), f"{month:02}", f"{day:02}" if day else "")))
        for month, day in dict.fromkeys(pairs)
        if 0 < month <= 12 and day <= 31
    ]
