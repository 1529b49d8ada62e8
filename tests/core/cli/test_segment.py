import io
import json

import numpy as np

from precise_rag import Candidate, Document, GradientSelector
from precise_rag.cli import main
from precise_rag.cli.output import print_selection, warn
from precise_rag.cli.segment import explained_lines
from precise_rag.redaction import visible, visible_line
from precise_rag.segmentation import Segmentation, SegmenterOptions
from precise_rag.structure import read_structure
from support.documents import read_cases


def test_segment_prints_chunks_that_tile_the_file_below_their_headings(folder, precise, tmp_path):
    file = folder / "docs" / "lamp.txt"
    code, out, _ = precise("segment", file, "--json")
    text = file.read_text()
    chunks = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert "".join(chunk["text"] for chunk in chunks) == text
    assert all(text[chunk["start"] : chunk["end"]] == chunk["text"] for chunk in chunks)
    code, out, _ = precise("segment", file, "--explain", "--max-tokens", "20")
    assert code == 0
    assert out.startswith("lamp.txt: 3 sentences, ")
    assert "max_tokens 20" in out
    file = tmp_path / "eels.md"
    file.write_text("# Eels\n\nThey come.\n\n## May\n\nNow.\n")
    _, out, _ = precise("segment", file, "--json", "--max-tokens", "8")
    paths = [json.loads(line).get("header_path") for line in out.splitlines()]
    assert paths == [None, "/Eels/"]


def test_each_gap_is_explained_by_its_score_and_each_cut_by_its_reason():
    document = Document("<d>", "One & one. Two.\n\nThree <b>.")
    found = Segmentation(
        spans=np.array([[0, 11], [11, 17], [17, 27]]),
        n_tokens=np.array([3, 1, 4]),
        paragraphs=np.array([0, 0, 1]),
        scores=np.array([0.875, 0.25], dtype=np.float32),
        cuts=np.array([1]),
        lengths=np.array([4, 4]),
        structure=read_structure(document.text),
        blocks=np.array([0, 0, 1]),
        reasons=("topic",),
    )
    lines = list(explained_lines(document, found, SegmenterOptions(max_tokens=9)))
    assert lines == read_cases("commands.json", "explained")


def test_the_cut_is_shown_once_with_its_reason(capsys):
    selection = GradientSelector(min_k=1).select(
        Candidate("d", 10 * i, 10 * i + 5, f"text {i}", score, "probability")
        for i, score in enumerate([0.9, 0.8, 0.1, 0.05, 0.04, 0.03])
    )
    print_selection(selection)
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if "cut after" in line] == [
        "  ── cut after rank 2: sharp drop: 0.1 is not above 0.3 × 0.8"
    ]
    assert lines[-1].strip() == "… and 1 more dropped"


def test_every_control_character_is_escaped_and_an_error_one_line_of_bounded_length(capsys):
    codes = (*range(32), *range(127, 160), *range(0x202A, 0x202F), *range(0x2060, 0x2070), 0x61C, 0x200E)
    obeyed = {*map(chr, (*codes, 0x200F, 0x2028, 0x2029, 0xD83D, 0xFEFF, 0xE0041))} - {"\n", "\t"}
    assert [c for c in obeyed if not visible(c).startswith("\\") or not visible(c).isprintable()] == []
    assert visible("\x1b]0;title\x07 \u202e") == r"\x1b]0;title\x07 \u202e"
    assert visible("Zeile\r\nzwei\tß 🦦 👩‍🚀 می‌خواهم") == "Zeile\nzwei\tß 🦦 👩‍🚀 می‌خواهم"
    assert visible_line("a\nb\tc") == r"a\nb\tc"
    warn("a\nb\x1b" + "x" * 10_000)
    err = capsys.readouterr().err
    assert err.startswith("precise: a\\nb\\x1bxx")
    assert err.count("\n") == 1
    assert len(err) == 2_001


def test_output_that_a_stream_cannot_encode_is_escaped(tmp_path, monkeypatch):
    (tmp_path / "a.txt").write_text("Où est le phare ?")
    raw = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(raw, encoding="ascii"))
    assert main(["segment", str(tmp_path / "a.txt")]) == 0
    head, text = raw.getvalue().decode().splitlines()
    assert head.startswith(r"\u2500\u2500 a.txt \xb7 chunk 1")
    assert text == r"| O\xf9 est le phare ?"
