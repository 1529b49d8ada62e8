from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from precise_rag import Document
from precise_rag.cli import main
from precise_rag.segmentation import Segmentation, SegmenterOptions
from precise_rag.viz.segmentation_page import segmentation_page
from precise_rag.viz.segmentation_terminal import segmentation_lines

DOCUMENT = Document("<d>", "One & one. Two.\n\nThree <b>.")
FOUND = Segmentation(
    spans=np.array([[0, 11], [11, 17], [17, 27]]),
    n_tokens=np.array([3, 1, 4]),
    paragraphs=np.array([0, 0, 1]),
    scores=np.array([0.875, 0.25], dtype=np.float32),
    cuts=np.array([1]),
    lengths=np.array([4, 4]),
)


class Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text: list[str] = []
        self.sources: list[str] = []

    def handle_starttag(self, tag: str, attrs: list) -> None:
        if tag not in ("meta", "line", "circle", "polyline"):
            self.open.append(tag)
        self.sources += [
            value for name, value in attrs if name in ("src", "href") and not value.startswith("#")
        ]

    def handle_endtag(self, tag: str) -> None:
        if tag not in ("line", "circle", "polyline"):
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def test_terminal_lines() -> None:
    lines = list(segmentation_lines(DOCUMENT, FOUND, SegmenterOptions(max_tokens=9)))
    assert lines == [
        "<d>: 3 sentences, 2 chunks (threshold 0.55, max_tokens 9, paragraphs soft)",
        "",
        "── chunk 1 · 4 tokens ──",
        "███████  0.88  One & one.",
        "██       0.25 ✂Two.",
        "",
        "── chunk 2 · 4 tokens ──",
        "               Three <b>.",
    ]
    assert "\033[31m" in "\n".join(segmentation_lines(DOCUMENT, FOUND, SegmenterOptions(), color=True))


def test_page_is_well_formed_and_needs_nothing_else() -> None:
    page = segmentation_page(DOCUMENT, FOUND, SegmenterOptions(max_tokens=9))
    reader = Reader()
    reader.feed(page)
    assert reader.open == []
    assert reader.sources == []
    text = " ".join(reader.text)
    for expected in (
        "<d>",
        "One & one.",
        "Three <b>.",
        "threshold 0.55",
        "max_tokens 9",
        "cut at 0.25",
        "0.88",
    ):
        assert expected in text
    assert "<script" not in page
    assert "as the limits ask" not in page


def test_a_cut_above_the_threshold_says_why() -> None:
    page = segmentation_page(DOCUMENT, FOUND, SegmenterOptions(max_tokens=9, threshold=0.2))
    assert "cut at 0.25, as the limits ask" in page


def test_a_long_document_gets_several_rows() -> None:
    n = 1000
    found = Segmentation(
        np.array([[k, k + 1] for k in range(n)]),
        np.ones(n),
        np.zeros(n),
        np.full(n - 1, 0.9),
        np.array([500]),
        np.array([501, 499]),
    )
    assert segmentation_page(Document("d", "x" * n), found, SegmenterOptions()).count("<svg") == 3


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a.txt"
    file.write_text(
        "Yeast makes dough rise. The oven is hot. In 1969 two men walked on the Moon. They took rocks home."
    )
    assert main(["inspect", str(file), "--max-tokens", "20"]) == 0
    assert "max_tokens 20" in capsys.readouterr().out
    out = tmp_path / "a.html"
    assert main(["inspect", str(file), "--html", str(out), "--threshold", "0.9"]) == 0
    assert "threshold 0.9" in out.read_text()
    assert main(["inspect", str(file), "--document", "b"]) == 1
    assert "no document 'b'" in capsys.readouterr().err
    file.write_text(" ")
    assert main(["inspect", str(file)]) == 1
