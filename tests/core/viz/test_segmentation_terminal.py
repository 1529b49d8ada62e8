from precise_rag.segmentation import SegmenterOptions
from precise_rag.viz.segmentation_terminal import segmentation_lines
from support.segmented import DOCUMENT, FOUND


def test_terminal_lines() -> None:
    lines = list(segmentation_lines(DOCUMENT, FOUND, SegmenterOptions(max_tokens=9)))
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
    assert "\033[31m" in "\n".join(segmentation_lines(DOCUMENT, FOUND, SegmenterOptions(), color=True))
