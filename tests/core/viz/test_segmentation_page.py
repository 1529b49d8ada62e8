import re

import numpy as np
import pytest

from precise_rag import Document, Segmenter
from precise_rag.segmentation import Segmentation, SegmenterOptions
from precise_rag.structure import read_structure
from precise_rag.viz.cut_reasons import REASONS
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
    ):
        assert expected in text
    assert page.values("href") == ["#chunk2"] * 2
    assert "0.88" not in text
    assert "chunk2" in page.values("id")
    labels = page.values("aria-label")
    assert labels == ["scores of the gaps between sentences 1 and 3, threshold 0.55, cuts: 1"] * 2


@pytest.mark.parametrize("reason", REASONS)
def test_every_cut_says_why(reason: str) -> None:
    page = segmentation_page(DOCUMENT, FOUND._replace(reasons=(reason,)), SegmenterOptions(max_tokens=9))
    assert f"cut at 0.25: {REASONS[reason]}" in page


def test_structure_is_shown_and_code_keeps_its_white_space() -> None:
    text = "# Title\n\nThis does it:\n\n```\nif x:\n    y  = 1\n```\n\n- one item\n"
    segmenter = Segmenter.from_pretrained("small")
    markup = segmentation_page(Document("d", text), segmenter.explain(text), segmenter.options)
    page = assert_stands_alone(markup)
    assert "if x:\n    y  = 1" in markup
    assert {"heading 1", "item 1"} <= set(page.values("title"))
    assert "pre.code { font: .82rem/1.45 ui-monospace" in markup


def luminance(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    return sum(
        weight * (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4)
        for weight, part in zip((0.2126, 0.7152, 0.0722), parts, strict=True)
    )


def test_scores_are_readable_in_light_and_dark() -> None:
    style = segmentation_page(DOCUMENT, FOUND, SegmenterOptions())
    for scheme in re.findall(r":root \{(.*?)\}", style, re.DOTALL):
        colours = dict(re.findall(r"--(\w+): (#\w{6})", scheme))
        for ink in ("soft", "accent"):
            for ground in ("paper", "panel", "other"):
                light, dark = sorted((luminance(colours[ink]), luminance(colours[ground])), reverse=True)
                assert (light + 0.05) / (dark + 0.05) >= 4.5, (ink, ground)


def test_a_long_document_gets_several_rows() -> None:
    n = 1000
    found = Segmentation(
        np.array([[k, k + 1] for k in range(n)]),
        np.ones(n),
        np.zeros(n),
        np.full(n - 1, 0.9),
        np.array([500]),
        np.array([501, 499]),
        read_structure("x" * n),
        np.zeros(n, dtype=np.int64),
        ("length",),
    )
    assert segmentation_page(Document("d", "x" * n), found, SegmenterOptions()).count("<svg") == 3 + 7
