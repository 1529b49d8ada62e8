"""Numbers and dates in one form each: 1,200 is 1200, and 3 May 2021 is 2021-05-03."""

import re
from functools import partial

from precise_rag._data import packaged_toml

ascii_digits = partial(re.compile(r"[^\D0-9]").sub, lambda digit: str(int(digit[0])))
"""Writes the digits of every script as 0 to 9."""
_NUMBER = re.compile(r"(?<![\d.,])(\d{1,3}(?:[,.'’\u00a0\u202f]\d{3})+)(?!\d)(?:[.,]00(?!\d))?")
_MONTHS = {
    name: number
    for number, names in enumerate(packaged_toml("stems.toml")["months"], 1)
    for name in names.split()
}
_MONTH = rf"({'|'.join(_MONTHS)})[^\W\d_]{{0,9}}\.?"
_DATE = re.compile(
    r"(?<![\w.-])(?:(\d{4})[-./年](\d\d?)[-./月](\d\d?)日?(?!\d)|(\d\d?)([-./])(\d\d?)\5(\d{4})\b"
    rf"|(\d\d?)(?:st|nd|rd|th|er|\.|º)?(?: of| de)? {_MONTH},?(?: de)? (\d{{4}})\b"
    rf"|{_MONTH} (\d\d?)(?:st|nd|rd|th)?,? (\d{{4}})\b)",
    re.IGNORECASE,
)


def in_one_form(text: str) -> str:
    """Return a text with its numbers and dates written alike; of 3/5/2021 nobody knows the month."""
    return _DATE.sub(_iso, _NUMBER.sub(_ungrouped, ascii_digits(text)))


def with_one_form(text: str) -> str:
    """Return a text for its words: each number in groups, and each date, is followed by its one form."""
    text = _NUMBER.sub(lambda number: f"{number[0]} {_ungrouped(number)}", ascii_digits(text))
    return _DATE.sub(lambda date: f"{date[0]} {_iso(date).replace('-', '')}", text)


def _ungrouped(number: re.Match[str]) -> str:
    return "".join(filter(str.isdigit, number[1]))


def _iso(date: re.Match[str]) -> str:
    first, second, third, one, mark, other, year, day, name, of_year, month, of_month, last = date.groups()
    if first:
        return _written(first, second, third)
    if year and (mark == "." or int(one) > 12 or one == other):
        return _written(year, other, one)
    if year:
        return _written(year, one, other) if int(other) > 12 else date[0]
    return _written(of_year or last, _MONTHS[(name or month).lower()], day or of_month)


def _written(year: str, month: str | int, day: str) -> str:
    return f"{year}-{int(month):02}-{int(day):02}"
