from dataclasses import replace
from typing import Any

import pytest

from precise_rag.evidence.stretches import split_into_sentences
from precise_rag.titles import below, joined_titles, new_sections, titles_above, titles_of, with_header_path
from precise_rag.types import Candidate, Decision, Excerpt
from support.documents import read_cases

WRITTEN = with_header_path({"title": "a/b"}, ("In/out", "No / name | Price"))


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [*read_cases("titles.json", "spellings"), (WRITTEN, ["a/b", "In/out", "No / name | Price"])],
)
def test_all_spellings_of_titles_are_read_alike(metadata: dict[str, Any], expected: list[str]) -> None:
    assert list(titles_of(metadata)) == expected


def test_titles_of_the_index_come_first_and_long_ones_are_cut() -> None:
    unknown = Candidate("a", 0, 1, "x", 0.0, "rank", metadata={"title": "Pumps"})
    assert titles_above(unknown) == ("Pumps",)
    assert titles_above(replace(unknown, above=("Pumps", "Oil"))) == ("Pumps", "Oil")
    assert below((), "a" * 5_000, "b") == ("a" * 1_000,)
    assert joined_titles(below(("a",), "b", "a")) == "a > b"


@pytest.mark.parametrize(("metadata", "text", "expected"), read_cases("titles.json", "sections"))
def test_titles_above_a_piece_hold_up_to_the_heading_in_it_that_ends_them(metadata, text, expected) -> None:
    sentences = split_into_sentences(
        Candidate("a", 0, len(text), text, 0.0, "rank", metadata=metadata)
    ).sentences
    told = [joined_titles(one.above) for one in sentences if one.text.endswith((".", "|", "。"))]
    assert told == expected


def test_a_section_is_named_once_after_its_file_if_another_has_its_title() -> None:
    def excerpt(start: int, first: tuple[str, ...], last: tuple[str, ...]) -> Excerpt:
        pair = enumerate((first, last), start)
        parts = [Candidate("d", n, n + 1, "x", 0.5, "probability", above=titles) for n, titles in pair]
        decisions = tuple(Decision(1 + n, part, True, "") for n, part in enumerate(parts))
        return Excerpt("d", start, start + 2, "xx", 0.5, "probability", above=first, sentences=decisions)

    pump, oil, belt = ("Pump",), ("Pump", "Oil"), ("Pump", "Belt")
    excerpts = [excerpt(0, pump, oil), excerpt(4, oil, oil), excerpt(8, belt, belt)]
    assert new_sections(excerpts) == [pump, (), belt]
    pages = [replace(excerpts[0], doc_id=page, metadata={"source": page[:1]}) for page in ("a1", "a2", "b")]
    assert new_sections(pages[:2]) == [pump, pump]
    assert new_sections(pages[1:]) == [("a", "Pump"), ("b", "Pump")]
