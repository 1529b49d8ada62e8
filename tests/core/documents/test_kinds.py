"""Every kind of document that people have, made by the programs' own libraries."""

import importlib
import json
import zipfile
from pathlib import Path

import pytest

from precise_rag import Document, read_documents
from precise_rag.documents import FileReport, conversion, place_of
from precise_rag.documents.conversion import Patience, close_converter, convert
from precise_rag.errors import InputError
from precise_rag.facts import candidate_facts, read_facts, write_facts
from precise_rag.pages import Box
from precise_rag.types import Candidate, Chunk

TABLE = "| Route | Price |\n| --- | --- |\n| Island | 12 |"
HTML = (
    "<h1>Fares</h1><p>Adults pay 12 euros.</p><table><tr><th>Route</th><th>Price</th></tr>"
    "<tr><td>Island</td><td>12</td></tr></table><h2>Night ferry</h2><p>The last_ferry leaves at 23:40.</p>"
)


def write_html(file: Path) -> None:
    file.write_text(f"<html><head><title>Handbook</title><script>x</script></head><body>{HTML}</body></html>")


def write_docx(file: Path) -> None:
    made = pytest.importorskip("docx").Document()
    made.add_heading("Fares", 1)
    made.add_paragraph("Adults pay 12 euros.")
    table = made.add_table(rows=2, cols=2)
    for row, texts in zip(table.rows, (("Route", "Price"), ("Island", "12")), strict=True):
        for cell, text in zip(row.cells, texts, strict=True):
            cell.text = text
    made.add_heading("Night ferry", 2)
    made.add_paragraph("The last_ferry leaves at 23:40.")
    made.save(str(file))


def write_pptx(file: Path) -> None:
    made = pytest.importorskip("pptx").Presentation()
    for title, text in (
        ("Fares", "Adults pay 12 euros."),
        ("Night ferry", "The last_ferry leaves at 23:40."),
    ):
        slide = made.slides.add_slide(made.slide_layouts[1])
        slide.shapes.title.text, slide.placeholders[1].text = title, text
    frame = made.slides[0].shapes.add_table(2, 2, 0, 4_000_000, 4_000_000, 1_000_000)
    for row, texts in zip(frame.table.rows, (("Route", "Price"), ("Island", "12")), strict=True):
        for cell, text in zip(row.cells, texts, strict=True):
            cell.text = text
    made.save(str(file))


def write_pdf(file: Path) -> None:
    platypus = pytest.importorskip("reportlab.platypus")
    style = importlib.import_module("reportlab.lib.styles").getSampleStyleSheet()
    grid = [("GRID", (0, 0), (-1, -1), 1, "black")]
    parts = [
        platypus.Paragraph("Fares", style["Heading1"]),
        platypus.Paragraph("Adults pay 12 euros.", style["Normal"]),
        platypus.Table([["Route", "Price"], ["Island", "12"]], style=grid),
        platypus.PageBreak(),
        platypus.Paragraph("Night ferry", style["Heading2"]),
        platypus.Paragraph("The last_ferry leaves at 23:40.", style["Normal"]),
    ]
    platypus.SimpleDocTemplate(str(file)).build(parts)


ODF = "urn:oasis:names:tc:opendocument:xmlns"
ODF_CELLS = "".join(
    "<table:table-row>"
    + "".join(
        f'<table:table-cell office:value-type="string"><text:p>{cell}</text:p></table:table-cell>'
        for cell in row
    )
    + "</table:table-row>"
    for row in (("Route", "Price"), ("Island", "12"))
)
ODF_TABLE = f'<table:table table:name="Fares">{ODF_CELLS}</table:table>'


def write_open_document(file: Path, kind: str, body: str) -> None:
    names = " ".join(f'xmlns:{name}="{ODF}:{name}:1.0"' for name in ("office", "text", "table"))
    with zipfile.ZipFile(file, "w") as made:
        made.writestr("mimetype", f"application/vnd.oasis.opendocument.{kind}")
        made.writestr(
            "content.xml",
            f"<office:document-content {names}><office:body><office:{kind}>{body}</office:{kind}>"
            "</office:body></office:document-content>",
        )
        made.writestr(
            "META-INF/manifest.xml",
            '<manifest:manifest xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"/>',
        )


def write_odt(file: Path) -> None:
    write_open_document(
        file,
        "text",
        '<text:h text:outline-level="1">Fares</text:h><text:p>Adults pay<text:s/>12 euros.</text:p>'
        f"{ODF_TABLE}<text:list><text:list-item><text:p>Bring a <text:span>ticket</text:span>.</text:p>"
        "<text:list><text:list-item><text:p>Or a card.</text:p></text:list-item></text:list>"
        "</text:list-item></text:list>"
        '<text:h text:outline-level="2">Night ferry</text:h><text:p>The last_ferry leaves at 23:40.</text:p>',
    )


def write_epub(file: Path) -> None:
    container = '<rootfiles><rootfile full-path="c.opf"/></rootfiles>'
    package = (
        '<package><metadata xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>Handbook</dc:title></metadata>'
        '<manifest><item id="c" href="c.xhtml"/></manifest><spine><itemref idref="c"/></spine></package>'
    )
    with zipfile.ZipFile(file, "w") as made:
        made.writestr("META-INF/container.xml", f"<container>{container}</container>")
        made.writestr("c.opf", package)
        made.writestr("c.xhtml", f"<html><body>{HTML}</body></html>")


def write_rst(file: Path) -> None:
    file.write_text(
        "Fares\n=====\n\nAdults pay 12 euros.\n\nNight ferry\n-----------\n\nThe last_ferry leaves at 23:40."
    )


def write_markdown(file: Path) -> None:
    file.write_text(
        f"# Fares\n\nAdults pay 12 euros.\n\n{TABLE}\n\n## Night ferry\n\nThe last_ferry leaves at 23:40.\n"
    )


WRITERS = {
    "a.html": (write_html, None),
    "a.docx": (write_docx, None),
    "a.pptx": (write_pptx, 2),
    "a.pdf": (write_pdf, 2),
    "a.odt": (write_odt, None),
    "a.epub": (write_epub, None),
    "a.rst": (write_rst, None),
    "a.markdown": (write_markdown, None),
}


@pytest.mark.parametrize("name", WRITERS)
def test_headings_tables_and_pages_survive(name: str, tmp_path: Path) -> None:
    pytest.importorskip("markitdown")
    write, page = WRITERS[name]
    write(tmp_path / name)
    (document,) = read_documents(tmp_path)
    text = document.text
    assert "Adults pay 12 euros." in text
    assert "last_ferry" in text
    assert "script" not in text
    if name != "a.rst":
        cells = [line for line in text.splitlines() if line.startswith("|")]
        assert [c.strip() for c in cells[-1].strip("|").split("|")] == ["Island", "12"]
    at = text.index("23:40")
    place = place_of(Chunk(name, at, at + 5, "23:40", metadata=document.metadata))
    assert (place.doc_id, place.page, place.headings[-1]) == (name, page, "Night ferry")
    assert document.metadata.get("title") in (None, "Handbook")


def test_a_pdf_without_space_characters_has_words(tmp_path: Path) -> None:
    """Typesetters leave gaps between words, in proportion to the size of the letters."""
    pytest.importorskip("markitdown")
    canvas = pytest.importorskip("reportlab.pdfgen.canvas").Canvas(str(tmp_path / "a.pdf"))
    for y, size, line in (
        (700, 9, "The ferry leaves at noon from the seventh pier."),
        (680, 9, "# this is a comment in a listing"),
        (640, 20, "Night ferry"),
    ):
        canvas.setFont("Times-Roman", size)
        x = 72.0
        for word in line.split():
            canvas.drawString(x, y, word)
            x += canvas.stringWidth(word, "Times-Roman", size) + 0.25 * size
    canvas.save()
    (document,) = read_documents(tmp_path)
    assert "The ferry leaves at noon from the seventh pier." in document.text
    assert [title for _, _, title in document.metadata["headings"]] == ["Night ferry"]


def test_records_of_csv_and_json(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("city;country\nOslo;Norway\n;\nRome;Italy;x\n")
    (tmp_path / "b.csv").write_text('id,text,year\n7,"One, two.",1999\n')
    (tmp_path / "c.json").write_text(json.dumps([{"id": "j", "text": "J."}, {"text": "K."}]))
    (tmp_path / "d.json").write_text(json.dumps({"price": {"adults": 12}, "routes": ["Island", "Cape"]}))
    (tmp_path / "e.csv").touch()
    assert list(read_documents(tmp_path)) == [
        Document(
            "a.csv", "city: Oslo; country: Norway\n\ncity: Rome; country: Italy; x", {"source": "a.csv"}
        ),
        Document("b.csv#7", "One, two.", {"source": "b.csv", "year": "1999"}),
        Document("c.json#j", "J.", {"source": "c.json"}),
        Document("c.json#2", "K.", {"source": "c.json"}),
        Document("d.json", "price.adults: 12\nroutes: Island\nroutes: Cape", {"source": "d.json"}),
        Document("e.csv", "", {"source": "e.csv"}),
    ]


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("utf-16", "Die Fähre fährt täglich."),
        ("cp1252", "Die Fähre fährt täglich über den Fluß. Größe und Länge sind schön."),
        ("cp1251", "Паром отправляется каждый вечер. Последний рейс в двенадцать часов."),
        ("shift_jis", "最後のフェリーは二十三時四十分に出発します。子供は無料です。"),
    ],
)
def test_encodings_are_detected_and_reported(encoding: str, text: str, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(text.encode(encoding))
    reports: list[FileReport] = []
    assert [document.text for document in read_documents(tmp_path, on_file=reports.append)] == [text]
    assert reports[0].status == "read"
    assert reports[0].why.startswith("" if encoding == "utf-16" else "read as ")


def test_every_file_is_accounted_for(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".gitignore").write_text("build/\n*.log\n!keep.log\n")
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "x.md").write_text("x")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / ".gitignore").write_text("secret.txt")
    for name in ("a.md", "b.log", "keep.log", "c.png", "LICENSE", "sub/secret.txt", "sub/d.py"):
        (tmp_path / name).write_text("text")
    (tmp_path / "bad.txt").write_bytes(b"a\0b")
    reports: list[FileReport] = []
    found = read_documents(tmp_path, on_error=lambda error: None, on_file=reports.append)
    assert [document.id for document in found] == ["LICENSE", "a.md", "keep.log", "sub/d.py"]
    outcome = {Path(r.path).relative_to(tmp_path).as_posix(): (r.status, r.why) for r in reports}
    assert outcome["build"] == outcome["b.log"] == ("skipped", "ignored by .gitignore")
    assert outcome["sub/secret.txt"] == ("skipped", "ignored by .gitignore")
    assert outcome["c.png"] == ("skipped", "this kind is not read (.png)")
    assert outcome[".git"] == ("skipped", "hidden")
    assert outcome["bad.txt"][0] == "failed"
    below = [document.id for document in read_documents(tmp_path / "sub")]
    assert below == ["d.py"]


def test_several_folders_and_patterns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("docs", "src"):
        (tmp_path / folder / "in").mkdir(parents=True)
        (tmp_path / folder / "in" / "a.md").write_text(folder)
    monkeypatch.chdir(tmp_path)
    assert [d.id for d in read_documents("docs", "./src")] == ["docs/in/a.md", "src/in/a.md"]
    assert [d.id for d in read_documents("docs/**/*.md")] == ["in/a.md"]
    with pytest.raises(InputError, match="no file matches"):
        list(read_documents("docs/*.txt"))


@pytest.mark.parametrize("name", ["a.docx", "a.pptx", "a.epub", "a.pdf"])
def test_damaged_files_are_named(name: str, tmp_path: Path) -> None:
    pytest.importorskip("markitdown")
    (tmp_path / name).write_bytes(b"%PDF-1.4 nothing" if name == "a.pdf" else b"PK nothing")
    (tmp_path / "b.txt").write_text("b")
    errors: list[InputError] = []
    assert [d.id for d in read_documents(tmp_path, on_error=errors.append)] == ["b.txt"]
    assert len(errors) == 1
    assert name in str(errors[0])


def test_an_archive_that_explodes_is_not_unpacked(tmp_path: Path) -> None:
    bomb = tmp_path / "bomb.docx"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("word/document.xml", b" " * 5_000_000)
    assert bomb.stat().st_size < 10_000
    with pytest.raises(InputError, match="unpacks to 5,000,000 bytes"):
        list(read_documents(bomb, max_bytes=1_000_000))


def test_a_converter_that_ends_costs_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("markitdown")
    file = tmp_path / "a.html"
    monkeypatch.setattr(conversion, "_SECONDS", 0.0)
    with pytest.raises(InputError, match="the converter ended"):
        convert(HTML.encode(), file, 10**6, Patience(100))
    monkeypatch.undo()
    assert convert(HTML.encode(), file, 10**6, Patience(100)).text.startswith("# Fares")
    close_converter()


def test_a_missing_converter_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        conversion, "_BEGIN", "import sys; sys.modules['mammoth'] = None\n" + conversion._BEGIN
    )
    (tmp_path / "a.html").write_text("<p>x</p>")
    with pytest.raises(InputError, match=r"'mammoth' is not.*pip install 'precise-rag\[documents\]'"):
        list(read_documents(tmp_path))


def test_files_that_cannot_be_converted_share_one_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every file is named, also those for which no time is left, and plain ones are read."""
    pytest.importorskip("markitdown")
    slow = "import time, precise_rag.documents.converter as c; c._convert = lambda *_: time.sleep(1000)\n"
    start = 'import_module("precise_rag.documents.converter").main()'
    monkeypatch.setattr(conversion, "_BEGIN", conversion._BEGIN.replace(start, slow + start))
    monkeypatch.setattr(conversion, "_SECONDS", 0.5)
    for number in range(5):
        (tmp_path / f"{number}.html").write_text("<p>x</p>")
    (tmp_path / "z.md").write_text("Plain.")
    reports: list[FileReport] = []
    found = read_documents(tmp_path, max_seconds=0.8, on_error=lambda _: None, on_file=reports.append)
    assert [document.id for document in found] == ["z.md"]
    assert [report.status for report in reports] == ["failed"] * 5 + ["read"]
    assert [Path(r.path).name for r in reports if "took more than" in r.why] == ["0.html", "1.html"]
    assert [Path(r.path).name for r in reports if "--max-seconds" in r.why] == ["2.html", "3.html", "4.html"]


@pytest.mark.parametrize(
    "name", ["a.pdf", "a.docx", "a.html", "a.epub", "a.json", "a.csv", "a.ipynb", "a.md"]
)
def test_a_file_without_content_is_a_document_without_text(name: str, tmp_path: Path) -> None:
    (tmp_path / name).touch()
    assert list(read_documents(tmp_path)) == [Document(name, "", {"source": name})]


def test_a_reply_is_no_longer_than_the_limit(tmp_path: Path) -> None:
    pytest.importorskip("markitdown")
    (tmp_path / "a.html").write_text("<hr>" * 1_000)
    with pytest.raises(InputError, match="holds more than 4,500 bytes of text"):
        list(read_documents(tmp_path, max_bytes=4_500))


def test_rows_of_tables_in_a_pdf_have_pages_and_boxes(tmp_path: Path) -> None:
    pytest.importorskip("markitdown")
    write_pdf(tmp_path / "a.pdf")
    (document,) = read_documents(tmp_path)

    def boxes(words: str) -> tuple[Box, ...]:
        at = document.text.index(words)
        piece = Chunk("a.pdf", at, at + len(words), words, metadata=document.metadata)
        assert read_facts({"precise": write_facts(candidate_facts(as_candidate(piece)))})["boxes"] == [
            list(box) for box in place_of(piece).boxes
        ]
        return place_of(piece).boxes

    (heading,), (row,), (last,) = boxes("Fares"), boxes("| Island | 12 |"), boxes("The last_ferry")
    assert (heading.page, row.page, last.page) == (1, 1, 2)
    assert 72 <= heading.x0 < heading.x1 < 523
    assert heading.top < heading.bottom <= row.top < row.bottom < 200
    assert [box.page for box in boxes(document.text)] == [1, 1, 1, 1, 2, 2]


def as_candidate(piece: Chunk) -> Candidate:
    return Candidate(
        piece.doc_id,
        piece.start,
        piece.end,
        piece.text,
        score=1.0,
        score_scale="rank",
        metadata=piece.metadata,
    )
