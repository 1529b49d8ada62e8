"""Spreadsheets, Rich Text and OpenDocument: what is in their cells and paragraphs."""

from datetime import date, datetime
from pathlib import Path

import pytest

from core.documents.test_kinds import ODF_TABLE, write_odt, write_open_document
from precise_rag import Document, read_documents
from precise_rag.errors import InputError

pytest.importorskip("markitdown")


def read(file: Path) -> Document:
    (document,) = read_documents(file)
    return document


def write_workbook(file: Path, *sheets: tuple[str, list[list[object]]], hidden: str = "") -> None:
    made = pytest.importorskip("openpyxl").Workbook()
    made.remove(made.active)
    for name, rows in sheets:
        sheet = made.create_sheet(name)
        for row in rows:
            sheet.append(row)
        if name == hidden:
            sheet.sheet_state = "hidden"
    made.save(str(file))


def test_sheets_are_tables_with_their_names_above(tmp_path: Path) -> None:
    rows = [["Route", "Price", "Since"], ["Island", 12.0, date(2024, 5, 1)], ["A|B", 7.5, None]]
    write_workbook(
        tmp_path / "a.xlsx", ("Fares 2024", rows), ("Empty", []), ("Secret", [["x", 1]]), hidden="Secret"
    )
    assert read(tmp_path / "a.xlsx").text == (
        "## Fares 2024\n\n| Route | Price | Since |\n| --- | --- | --- |\n| Island | 12 | 2024-05-01 |\n"
        "| A\\|B | 7.5 |  |"
    )


def test_blank_rows_part_tables_and_a_single_cell_is_a_title(tmp_path: Path) -> None:
    rows: list[list[object]] = [
        ["Prices", None],
        ["Route", "Price"],
        ["Island", 12],
        [None, None],
        ["Dog", "Free"],
        [True, 0],
    ]
    write_workbook(tmp_path / "a.xlsx", ("S", rows))
    assert read(tmp_path / "a.xlsx").text == (
        "## S\n\nPrices\n\n| Route | Price |\n| --- | --- |\n| Island | 12 |\n\n"
        "| Dog | Free |\n| --- | --- |\n| true | 0 |"
    )


def test_times_and_lines_of_a_cell_are_read(tmp_path: Path) -> None:
    write_workbook(
        tmp_path / "a.xlsx", ("S", [["When", "What"], [datetime(2024, 5, 1, 9, 30), "two\nlines"]])
    )
    assert "| 2024-05-01 09:30:00 | two lines |" in read(tmp_path / "a.xlsx").text


def test_open_document_sheets_are_read(tmp_path: Path) -> None:
    write_open_document(tmp_path / "a.ods", "spreadsheet", ODF_TABLE)
    assert read(tmp_path / "a.ods").text == "## Fares\n\n| Route | Price |\n| --- | --- |\n| Island | 12 |"


def test_lists_and_tables_of_open_document_texts_are_read(tmp_path: Path) -> None:
    write_odt(tmp_path / "a.odt")
    assert "- Bring a ticket.\n  - Or a card." in read(tmp_path / "a.odt").text


def test_remarks_are_left_out_and_each_cell_is_read_once(tmp_path: Path) -> None:
    inner = ODF_TABLE.replace("Island", "Coast")
    row = f"<table:table-row><table:table-cell>{inner}</table:table-cell></table:table-row>"
    remark = "<office:annotation><text:p>by Ilse</text:p></office:annotation>"
    write_open_document(
        tmp_path / "a.odt",
        "text",
        f"<text:p>Adults{remark} pay<text:span><text:p>a fare</text:p></text:span>twice.</text:p>"
        f"<table:table><table:table-header-rows>{row}</table:table-header-rows></table:table>",
    )
    text = read(tmp_path / "a.odt").text
    assert text.startswith("Adults pay a fare twice.")
    assert text.count("Coast") == 1


def test_entities_of_open_document_are_refused(tmp_path: Path) -> None:
    import zipfile

    entity = '<!DOCTYPE a [<!ENTITY x "boom">]><a>&x;</a>'
    with zipfile.ZipFile(tmp_path / "a.odt", "w") as made:
        made.writestr("content.xml", entity)
    with pytest.raises(InputError, match="cannot be converted"):
        read(tmp_path / "a.odt")


def test_rich_text_has_paragraphs_letters_and_tables(tmp_path: Path) -> None:
    (tmp_path / "a.rtf").write_text(
        r"{\rtf1\ansi\ansicpg1252{\fonttbl{\f0 Arial;}}\pard Caf\'e9 fares in \u8364? here.\par"
        r"\trowd\cellx100\cellx200 Route\cell Price\cell\row Island\cell 12\cell\row"
        r"\pard The last ferry.\par}"
    )
    assert read(tmp_path / "a.rtf").text == (
        "Café fares in € here.\n\n| Route | Price |\n| --- | --- |\n| Island | 12 |\n\nThe last ferry."
    )


@pytest.mark.parametrize("name", ["a.xlsx", "a.ods", "a.odt", "a.rtf", "a.pdf", "a.xls"])
def test_files_without_bytes_are_empty(name: str, tmp_path: Path) -> None:
    (tmp_path / name).touch()
    assert read(tmp_path / name) == Document(name, "", {"source": name})


@pytest.mark.parametrize("name", ["a.xlsx", "a.ods", "a.odt", "a.xls"])
def test_damaged_files_are_named(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(b"PK no archive at all")
    with pytest.raises(InputError, match=name):
        read(tmp_path / name)


def test_what_is_no_pdf_is_named_as_such(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(b"something else")
    with pytest.raises(InputError, match=r"a\.pdf: cannot be converted .*does not begin as a PDF does"):
        read(tmp_path / "a.pdf")
