"""Tables are read as the standard library reads them, with fields of any length."""

import csv
import io
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from precise_rag import read_documents
from precise_rag.documents.tables import table_rows
from precise_rag.errors import InputError

FILE = Path("a.csv")


@given(st.text(st.sampled_from('ab,;" \r\n'), max_size=30), st.sampled_from(",;"))
def test_rows_are_those_of_the_standard_reader(text: str, delimiter: str) -> None:
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))
    except csv.Error:
        assume(False)
    assert list(table_rows(text, delimiter, FILE)) == rows


def test_a_field_of_any_length_is_read_and_the_reader_of_others_stays_as_it_was(tmp_path: Path) -> None:
    limit = csv.field_size_limit()
    long = "word, " * 100_000 + '"'
    with (tmp_path / "a.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["id", "text"], ["1", "Short."], ["2", long], ["3", "After."]])
    assert [(d.id, d.text) for d in read_documents(tmp_path)] == [
        ("a.csv#1", "Short."),
        ("a.csv#2", long),
        ("a.csv#3", "After."),
    ]
    assert csv.field_size_limit() == limit


@pytest.mark.parametrize("text", ["," * 20_000, "a,b\n" + "x," * 20_000])
def test_too_many_columns_are_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"row [12]: has more than 10,000 columns"):
        list(table_rows(text, ",", FILE))


@pytest.mark.parametrize("unit", ['"', '"a', 'a"', '""', ",", "\r", '",'])
def test_no_text_takes_more_steps_than_it_has_characters(unit: str) -> None:
    """With steps that grow as the square, these would take minutes."""
    with suppress(InputError):  # too many columns
        assert list(table_rows(unit * 10**5, ";", FILE))
