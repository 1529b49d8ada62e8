import numpy as np

from precise_rag import Document
from precise_rag.segmentation import Segmentation, SegmenterOptions
from precise_rag.viz.segmentation_page import segmentation_page
from support.html import assert_stands_alone
from support.segmented import DOCUMENT, FOUND


def test_the_page_stands_alone_and_shows_scores_and_cuts() -> None:
    markup = segmentation_page(DOCUMENT, FOUND, SegmenterOptions(max_tokens=9))
    page = assert_stands_alone(markup)
    text = " ".join(page.text)
    for expected in (
        "<d>",
        "One & one.",
        "Three <b>.",
        "threshold 0.55",
        "max_tokens 9",
        "cut at 0.25",
        "cut after sentence 2: 0.25",
        "0.88",
    ):
        assert expected in text
    assert "length limits" not in text.replace("the length limits allow it", "")
    assert page.values("href") == ["#chunk2"]
    assert "chunk2" in page.values("id")
    labels = page.values("aria-label")
    assert labels == ["scores of the gaps between sentences 1 and 3, threshold 0.55, cuts: 1"]


def test_a_cut_above_the_threshold_says_why() -> None:
    page = segmentation_page(DOCUMENT, FOUND, SegmenterOptions(max_tokens=9, threshold=0.2))
    assert "cut at 0.25 because of the length limits" in page


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
