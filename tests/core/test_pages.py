"""Pages and rectangles from a document's metadata, also from metadata that others wrote."""

import pytest

from precise_rag.pages import Box, boxes_of, page_at, write_boxes

BOXES = write_boxes([(0, (72.6, 90.2, 510.1, 103.7)), (10, (72, 110, 300, 124)), (20, (72, 90, 200, 104))])
METADATA = {"pages": [0, 20], "boxes": BOXES}


def test_rectangles_are_rounded_outwards() -> None:
    assert BOXES == "0 72 90 511 104;10 72 110 300 124;20 72 90 200 104"


@pytest.mark.parametrize(
    ("span", "lines"),
    [((0, 10), [0]), ((3, 4), [0]), ((3, 11), [0, 1]), ((10, 30), [1, 2]), ((25, 99), [2]), ((0, 0), [])],
)
def test_a_span_has_the_lines_that_it_touches(span: tuple[int, int], lines: list[int]) -> None:
    every = [Box(1, 72, 90, 511, 104), Box(1, 72, 110, 300, 124), Box(2, 72, 90, 200, 104)]
    assert list(boxes_of(METADATA, *span)) == [every[line] for line in lines]


def test_pages_are_counted_from_one() -> None:
    assert [page_at(METADATA, offset) for offset in (0, 19, 20)] == [1, 1, 2]


@pytest.mark.parametrize("pages", [None, 12, "3-4", ["a"], {}])
def test_metadata_of_these_names_from_elsewhere_are_no_pages(pages: object) -> None:
    assert page_at({"pages": pages}, 5) is None
    assert boxes_of({"pages": pages, "boxes": BOXES}, 0, 9) == ()


@pytest.mark.parametrize("boxes", [None, [1], "", "a b", "1 2 3"])
def test_metadata_of_these_names_from_elsewhere_are_no_boxes(boxes: object) -> None:
    assert boxes_of({"pages": [0], "boxes": boxes}, 0, 9) == ()
