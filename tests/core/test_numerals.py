"""Numbers and dates are compared, and found, in one form each."""

from datetime import date, timedelta

import pytest

from precise_rag import Document, PreciseRAG, prune
from precise_rag.index.words import split_words
from precise_rag.numerals import in_one_form
from precise_rag.stems import initials, read_words
from support.documents import read_cases


@pytest.mark.parametrize(("text", "form"), read_cases("numerals.json", "in one form"))
def test_numbers_and_dates_are_written_alike(text: str, form: str) -> None:
    assert in_one_form(text) == form


def test_a_date_has_the_words_of_its_day_and_its_month_beside_its_own() -> None:
    for text in ("On 3 May 2021.", "On 2021-05-03.", "On 03.05.2021."):
        assert {"on", "2021", "20210503", "202105", "0503"} <= {*read_words(text).stems}


@pytest.mark.parametrize("asked", ["on 14 March 2021", "on March 14", "in April 2021", "for 1,936 litres"])
def test_a_row_is_found_by_its_date_or_number_however_that_is_written(asked: str) -> None:
    days = [date(2021, 1, 1) + timedelta(days=24 * n) for n in range(40)]
    rows = [f"{day},pump {n},{1_000 + 234 * n}" for n, day in enumerate(days)]
    rag = PreciseRAG.from_documents([Document("log", "\n".join(["day,pump,litres", *rows]))])
    kept = sorted(rag.retrieve(f"Which pump ran {asked}?").kept, key=lambda found: -found.score)
    assert rows[3 if "14" in asked else 4] in [found.text for found in kept[:2]]


def test_a_name_of_several_words_finds_its_initials() -> None:
    firsts, seconds = ("Harbour", "Ferry", "Tidal", "Granary", "Mill"), ("Rope", "Oil", "Iron", "Salt")
    names = [f"{first} {second} Office" for first in firsts for second in seconds]
    said = [f"The {initials(name)} paid for {n} boats, as the clerk wrote." for n, name in enumerate(names)]
    parts = [" ".join(f"The {name} ({initials(name)}) is old." for name in names), *said]
    assert said[5] in prune("\n\n".join(parts), "What did the Ferry Oil Office pay for?", 60).text


@pytest.mark.parametrize("words", ["three days", "drei tage", "trois jours", "tres días", "ТРИ дня", "três"])
def test_a_number_in_words_is_the_number_but_no_name(words: str) -> None:
    assert (read_words(f". {words}").stems[0], split_words(words)[0]) == ("3", "3")
    assert not any(read_words(words).marked)
