import json

import numpy as np

from precise_rag import Document
from precise_rag.cli.segment import explained_lines
from precise_rag.segmentation import Segmentation, SegmenterOptions
from precise_rag.structure import read_structure

DOCUMENT = Document("<d>", "One & one. Two.\n\nThree <b>.")
FOUND = Segmentation(
    spans=np.array([[0, 11], [11, 17], [17, 27]]),
    n_tokens=np.array([3, 1, 4]),
    paragraphs=np.array([0, 0, 1]),
    scores=np.array([0.875, 0.25], dtype=np.float32),
    cuts=np.array([1]),
    lengths=np.array([4, 4]),
    structure=read_structure(DOCUMENT.text),
    blocks=np.array([0, 0, 1]),
    reasons=("topic",),
)


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
    assert out.startswith("lamp.txt: 2 sentences, ")
    assert "max_tokens 20" in out
    file = tmp_path / "eels.md"
    file.write_text("# Eels\n\nThey come.\n\n## May\n\nNow.\n")
    _, out, _ = precise("segment", file, "--json", "--max-tokens", "8")
    paths = [json.loads(line).get("header_path") for line in out.splitlines()]
    assert paths == [None, "/Eels/"]


def test_each_gap_is_explained_by_its_score_and_each_cut_by_its_reason():
    lines = list(explained_lines(DOCUMENT, FOUND, SegmenterOptions(max_tokens=9)))
    assert lines == [
        "<d>: 3 sentences, 2 chunks, read as text (threshold 0.55, max_tokens 9, paragraphs soft)",
        "",
        "── chunk 1 · 4 tokens ──",
        "███████  0.88  One & one.",
        "██       0.25 ✂Two.",
        "",
        "── chunk 2 · 4 tokens · the topic changes ──",
        "               Three <b>.",
    ]
