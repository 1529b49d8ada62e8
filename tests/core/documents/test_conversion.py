"""Files that need a converter, made by the programs' own libraries."""

import json
import textwrap
import zipfile
from pathlib import Path

import pytest

from precise_rag import read_documents
from precise_rag.documents import conversion
from precise_rag.errors import InputError
from precise_rag.facts import place_at
from precise_rag.structure import read_structure
from support.documents import read_cases

pytest.importorskip("markitdown")
pytest.importorskip("pypdfium2")

FARES, NIGHT = "Adults pay 12 euros.", "The last_ferry leaves at 23:40."
HTML = f"<html><head><title>Handbook</title></head><body><h1>Fares</h1><p>{FARES}</p>{NIGHT}</body></html>"


def write_html(file: Path) -> None:
    file.write_text(HTML)


def write_docx(file: Path) -> None:
    made = pytest.importorskip("docx").Document()
    made.add_heading("Fares", 1)
    made.add_paragraph(FARES)
    made.add_paragraph(NIGHT)
    made.save(str(file))


def write_pptx(file: Path) -> None:
    made = pytest.importorskip("pptx").Presentation()
    for title, text in (("Fares", FARES), ("", NIGHT)):
        slide = made.slides.add_slide(made.slide_layouts[1])
        slide.shapes.title.text, slide.placeholders[1].text = title, text
    made.save(str(file))


def write_pdf(file: Path) -> None:
    canvas = pytest.importorskip("reportlab.pdfgen.canvas").Canvas(str(file))
    for text in (FARES, NIGHT):
        for x, y, drawn in ((72, 720, text), (72, 700, "Yeast"), (150, 702, "1.10")):
            canvas.drawString(x, y, drawn)
        canvas.showPage()
    canvas.save()


def write_epub(file: Path) -> None:
    with zipfile.ZipFile(file, "w") as made:
        for name, text in read_cases("documents.json", "book").items():
            made.writestr(name, text)


def write_ipynb(file: Path) -> None:
    cells = [{"cell_type": "markdown", "source": ["# Fares\n", f"\n{FARES}\n\n{NIGHT}"], "metadata": {}}]
    file.write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))


@pytest.mark.parametrize("write", [write_html, write_docx, write_pptx, write_pdf, write_epub, write_ipynb])
def test_a_file_becomes_markdown_with_its_pages(write, tmp_path: Path) -> None:
    ending = write.__name__.removeprefix("write_")
    write(tmp_path / f"a.{ending}")
    (document,) = read_documents(tmp_path)
    assert FARES in document.text
    assert NIGHT in document.text
    assert ("# Fares" in document.text) == ("Yeast   1.10" not in document.text) == (ending != "pdf")
    pages = [place_at(document.metadata, document.text.index(text)) for text in (FARES, NIGHT)]
    assert pages == ([{"page": 1}, {"page": 2}] if ending in ("pdf", "pptx") else [{}, {}])
    above = read_structure(document.text).above(document.text.index(NIGHT))
    assert above == ("Slide 2",) or ending != "pptx"
    assert document.metadata.get("title") in (None, "Handbook", "Fares")


def test_a_pdf_has_headings_and_paragraphs_but_no_running_heads(tmp_path: Path) -> None:
    canvas = pytest.importorskip("reportlab.pdfgen.canvas").Canvas(str(tmp_path / "a.pdf"))

    def draw(y: float, text: str, size: int = 10) -> None:
        canvas.setFont("Helvetica", size)
        x = 72.0
        for word in text.split():  # without a sign for what is between words, as TeX writes them
            canvas.drawString(x, y, word)
            x += canvas.stringWidth(word, "Helvetica", size) + 0.3 * size

    for page in range(1, 4):
        draw(800, f"Handbook of the night ferry {page}")
        draw(740, f"{page}. Fares of the night" if page < 3 else "and one more", 10 if page == 3 else 16)
        for y in (700, 688, 676):
            draw(y, f"On night {page} the fare of the ferry is paid at the pier or on board in coins")
        draw(662, "\u2022 coins" if page == 1 else "From 1 to 2 . . . . . . . . . . . 3")
        draw(640, "# wait for the ferry" if page == 1 else "The last lines of a page go on in the")
        for y in (600, 586) if page == 3 else ():  # rows that are larger than the text
            draw(y, f"Adult {y}", 14)
            canvas.drawString(300, y, "12.50")
        for y, word in enumerate(("left", "mid", "right", "one")) if page == 1 else ():  # of a figure
            draw(600 - 30 * y, word, 14)
        draw(40, str(page))
        canvas.showPage()
    canvas.save()
    (document,) = read_documents(tmp_path)
    line = "On night {0} the fare of the ferry is paid at the pier or on board in coins"
    first, second, third = ("\n".join([line.format(page)] * 3) for page in (1, 2, 3))
    assert document.text.split("\n\n") == [
        "Handbook of the night ferry 1",
        "# 1. Fares of the night",
        f"{first}\n- coins",
        "    # wait for the ferry",
        *("left", "mid", "right", "one"),
        "# 2. Fares of the night",
        f"{second}\nFrom 1 to 2 ... 3",
        "The last lines of a page go on in the\nand one more",
        f"{third}\nFrom 1 to 2 ... 3",
        "The last lines of a page go on in the",
        "Adult 600   12.50\nAdult 586   12.50",
    ]


def test_a_digit_of_a_pdf_is_raised_by_its_baseline_not_by_the_box_of_the_sign_before(tmp_path: Path) -> None:
    canvas = pytest.importorskip("reportlab.pdfgen.canvas").Canvas(str(tmp_path / "a.pdf"))
    font = pytest.importorskip("reportlab.pdfbase.ttfonts").TTFont("Vera", "Vera.ttf")
    font.face.ascent = font.face.descent = 0  # as LibreOffice writes them
    pytest.importorskip("reportlab.pdfbase.pdfmetrics").registerFont(font)
    x = 72.0
    for number, words in enumerate(("All 412,806 of the top 10 are 40 m", "2", " high, see note", "15")):
        canvas.setFont("Vera", 6.4 if number % 2 else 11)
        canvas.drawString(x, 704 if number % 2 else 700, words)
        x += canvas.stringWidth(words)
    canvas.save()
    (document,) = read_documents(tmp_path)
    assert document.text == "All 412,806 of the top 10 are 40 m² high, see note¹⁵"


def test_a_merged_cell_of_a_table_is_in_each_of_its_rows_and_columns(tmp_path: Path) -> None:
    made = pytest.importorskip("docx").Document()
    table = made.add_table(4, 4)
    for place in ((0, 0, 0, 3), (1, 1, 1, 2), (2, 0, 3, 0)):
        table.cell(*place[:2]).merge(table.cell(*place[2:])).text = f"m{place[0]}"
    table.cell(3, 3).text = "end"
    made.save(str(tmp_path / "a.docx"))
    (document,) = read_documents(tmp_path)
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in document.text.splitlines()[2:]]
    assert rows == [["m0", "", "", ""], ["", "m1", "m1", ""], ["m2", "", "", ""], ["m2", "", "", "end"]]


@pytest.mark.parametrize(("html", "text"), read_cases("documents.json", "html"))
def test_html_is_read_as_it_is_seen(html: str, text: str, tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(f"<body>{html}</body>", "utf-8")
    (document,) = read_documents(tmp_path)
    assert document.text == text


@pytest.mark.parametrize(("name", "content", "text", "error"), read_cases("documents.json", "in part"))
def test_what_is_damaged_or_missing_costs_no_more(tmp_path: Path, name, content, text, error) -> None:
    if isinstance(content, str):
        (tmp_path / name).write_bytes(content.encode("latin-1"))
    else:
        with zipfile.ZipFile(tmp_path / name, "w") as made:
            for part, written in content.items():
                made.writestr(part, written.encode("latin-1"))
    errors: list[InputError] = []
    (document,) = read_documents(tmp_path, on_error=errors.append)
    assert document.text.strip() == text
    assert "".join(map(str, errors)) == (error and f"{tmp_path / name}: {error}")


@pytest.mark.parametrize(
    ("limit", "most", "said"),
    [("SECONDS", 1e-6, "the converter ended, or took more"), ("MOST_TEXT_BYTES", 9, "its text has more")],
)
def test_a_converter_that_takes_too_long_or_returns_too_much_costs_one_file(
    limit: str, most: float, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a.html", "b.txt"):
        (tmp_path / name).write_text("<p>text</p>")
    errors: list[InputError] = []
    with monkeypatch.context() as patched:
        patched.setattr(conversion, limit, most)
        found = [document.id for document in read_documents(tmp_path, on_error=errors.append)]
    assert found == ["b.txt"]
    assert f"a.html: cannot be converted ({said}" in str(errors[0])
    assert [document.id for document in read_documents(tmp_path)] == ["a.html", "b.txt"]


def test_a_missing_converter_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversion, "find_spec", lambda name: None)
    (tmp_path / "a.html").write_text("<p>x</p>")
    with pytest.raises(InputError, match=r"a.html: 'markitdown' is not.*'precise-rag\[documents\]'"):
        list(read_documents(tmp_path))


def test_the_converter_imports_nothing_from_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    modules = "markitdown", "pypdfium2", "precise_rag", "json", "io", "re", "runpy"
    for name in (*modules, "sitecustomize", "usercustomize"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'imported')!r}, 'a').write({name!r})")
    write_html(tmp_path / "a.html")
    monkeypatch.chdir(tmp_path)
    assert [document.id for document in read_documents(tmp_path / "a.html")] == ["a.html"]
    assert not (tmp_path / "imported").exists()


@pytest.mark.parametrize("lower", [0, 5])
@pytest.mark.parametrize(("lefts", "width"), [((50, 320), 40), ((50, 230, 410), 25)])
@pytest.mark.parametrize(("above_table", "cells"), [(0, 200), (0, 320), (130, 230)])
def test_columns_that_are_drawn_line_by_line_are_read_one_after_the_other(
    lower: int, lefts: tuple[int, ...], width: int, above_table: int, cells: int, tmp_path: Path
) -> None:
    canvas = pytest.importorskip("reportlab.pdfgen.canvas").Canvas(
        str(tmp_path / "a.pdf"), pagesize=(600, 800)
    )
    texts = [
        f"The {what} was built in {year} by the men of the ferry house, and it has stood there since. " * 4
        for what, year in zip(("mill", "quay", "lock"), (1911, 1934, 1952)[: len(lefts)], strict=False)
    ]
    canvas.drawString(50, 760, "The yearbook of the harbour, and of all who work in it, for the year 1951")
    for row, lines in enumerate(zip(*(textwrap.wrap(text, width) for text in texts), strict=True)):
        for x, y, line in zip(lefts, (0, lower, lower), lines, strict=False):
            canvas.drawString(x, 730 - above_table - 14 * row - y, line)
    for row, name in enumerate(("mill", "quay", "lock", "shed", "ferry", "wheel", "boat", "rope")):
        canvas.drawString(50, (730 if above_table else 450) - 14 * row, name)
        canvas.drawString(cells, (730 if above_table else 450) - 14 * row, f"of {row} planks")
    canvas.save()
    (made,) = read_documents(tmp_path / "a.pdf")
    text = made.text.replace("\n", " ")
    places = [text.index("1951"), *(text.index(one.strip()) for one in texts)]
    assert places == sorted(places)
    assert "rope   of 7 planks" in text
