import pytest

from precise_rag.viz.charts import ScoredRank, gap_curve, line_chart, score_curve
from support.html import Page


def places(chart: str, tag: str, name: str) -> list[float]:
    """The values of an attribute of all elements of one tag."""
    return [float(part.split(f' {name}="')[1].split('"')[0]) for part in chart.split(f"<{tag} ")[1:]]


def test_lines_have_their_names_at_their_ends() -> None:
    chart = line_chart(
        {"a<b": [(200, 50.0), (400, 60.0)], "c": [(200, 50.0), (400, 60.0)]}, x_label="x", y_label="y"
    )
    assert "a&lt;b 60" in chart
    assert chart.count("<polyline") == 4
    first, second = places(chart, "text", "y")[-2:]
    assert abs(first - second) >= 12, "the names of two equal lines do not overlap"
    assert Page(chart).values("aria-label") == ["y by x; at 400: a<b 60%, c 60%"]


def test_points_are_named_with_their_values() -> None:
    marked = line_chart({"a": [(200, 50.0)]}, x_label="x", y_label="y", points={"b": (100, 70.0)})
    assert "b: 70% in 100 tokens" in marked
    assert marked.count("<path") == 1


@pytest.mark.parametrize("small", [False, True])
def test_a_score_curve_shows_what_was_kept_and_the_cut(small: bool) -> None:
    ranks = [
        ScoredRank(1, 0.9, True, "first"),
        ScoredRank(2, 0.5, True, "above", has_evidence=True),
        ScoredRank(3, 0.1, False, "sharp <drop>"),
    ]
    curve = score_curve(ranks, "a title", small=small)
    page = Page(curve)
    assert page.values("class").count("cut") == 1
    assert [c for c in page.values("class") if "keep" in str(c) or "drop" in str(c)] == [
        "keep",
        "evidence keep",
        "drop",
    ]
    heights = places(curve, "rect", "height")
    assert heights[1] / heights[0] == pytest.approx(0.5 / 0.9, abs=0.02)
    assert "rank 3: 0.1, sharp <drop>" in page.text
    assert page.values("aria-label") == ["a title: scores by rank, 2 of 3 kept; the last kept is rank 2"]


def test_a_score_curve_without_a_cut_and_without_scores() -> None:
    assert 'class="cut"' not in score_curve([ScoredRank(1, 0.9, True)])
    assert score_curve([]) == ""


def test_a_gap_curve_links_its_cuts() -> None:
    curve = gap_curve([0.9, 0.2, 0.7], {1: "#chunk2", 2: "#chunk3"}, threshold=0.5, first=0, last=2)
    page = Page(curve)
    assert page.values("href") == ["#chunk2"], "only the cuts of the drawn gaps"
    assert "cut after sentence 2: 0.20" in page.text
    high, low = places(curve, "line", "y1")[2], places(curve, "line", "y1")[0]
    assert low + (high - low) * 0.5 == pytest.approx(places(curve, "line", "y1")[3]), "the threshold"
