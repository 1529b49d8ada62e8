from typing import Any

import pytest

from precise_rag.metadata_keys import EMBEDDED_KEY
from precise_rag.titles import ends_in_title, joined_titles, title_of


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({}, ""),
        ({"title": "Borealis M-7"}, "Borealis M-7"),
        ({"title": "Pumps", "header_path": "/Care/Service/"}, "Pumps > Care/Service"),
        ({"Header 2": "Service", "Header 1": "Care", "source": "a.md"}, "Care > Service"),
        ({"title": "Pumps", "Header 1": "Pumps", "Header 2": " "}, "Pumps"),
        ({"title": 7, "header_path": None}, ""),
        ({"title": "Pumps", EMBEDDED_KEY: "pumps.pdf"}, "pumps.pdf"),
        ({"title": "Pumps", EMBEDDED_KEY: ""}, ""),
    ],
)
def test_the_title_is_read_from_the_metadata(metadata: dict[str, Any], expected: str) -> None:
    assert title_of(metadata) == expected


def test_long_titles_are_cut() -> None:
    assert len(title_of({"title": "a" * 5_000})) == 1_000
    assert joined_titles("a", "b", "a") == "a > b"


@pytest.mark.parametrize(
    ("title", "expected"),
    [("Service", True), ("Care > Service", True), ("vice", False), ("Care", False), ("", False)],
)
def test_the_last_title_is_known_whole(title: str, expected: bool) -> None:
    assert ends_in_title(joined_titles("Care", "Service"), title) is expected
