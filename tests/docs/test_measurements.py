"""Every figure of docs/measurements.md is in the page that its section links."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "measurements.md").read_text("utf-8")
SECTIONS = [section for section in PAGE.split("\n## ")[1:] if "\n|" in section]


def rows(text):
    """The cells of each row of the tables, as sets."""
    lines = re.findall(r"^\|(.*)\|$", text, re.MULTILINE)
    return [{cell.strip() for cell in line.split("|")} for line in lines if "---" not in line]


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.splitlines()[0])
def test_each_row_stands_in_the_page_of_results(section):
    linked = re.findall(r"/blob/main/(benchmarks/results/[\w-]+\.md)", section)
    found = [row for page in linked for row in rows((ROOT / page).read_text("utf-8"))]
    assert re.search(r"`python -m benchmarks\.[^`]+`", section)
    for row in rows(section):
        assert any(row <= one for one in found), row


def test_the_table_of_the_readme_is_the_first_one_there():
    readme = (ROOT / "README.md").read_text("utf-8")
    table = next(part for part in readme.split("\n## ") if "| pipeline | 200 |" in part)
    figures = {number.strip(" +-*") for row in rows(SECTIONS[0])[1:] for number in row}
    shown = [cell.strip("*") for row in rows(table)[1:] for cell in row if re.match(r"\**\d", cell)]
    assert len(shown) >= 25
    assert set(shown) <= figures


def test_each_page_of_results_is_linked_in_the_list_of_benchmarks():
    folder = ROOT / "benchmarks"
    linked = set(re.findall(r"\]\(results/([\w-]+\.md)\)", (folder / "README.md").read_text("utf-8")))
    assert linked == {page.name for page in (folder / "results").iterdir()}
