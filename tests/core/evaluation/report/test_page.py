"""The HTML report of an evaluation."""

from dataclasses import replace
from pathlib import Path

from precise_rag.evaluation import Outcome, Plan, circumstances, evaluate, render_report
from precise_rag.testing import HashEncoder
from support.html import assert_stands_alone
from support.village import TOPICS, dataset


def test_the_report_shows_curves_and_the_evidence_that_was_sent(outcome: Outcome) -> None:
    page = render_report([outcome], circumstances(0))
    assert_stands_alone(page)
    assert page.count("<svg") > len(outcome.dataset.documents) // 2
    assert "<mark>The mill was built by Millson in &lt;1802&gt;.</mark>" in page
    assert "Won: 8 of 8 questions" in page
    assert "http" not in page
    assert f"All {len(TOPICS)} questions: recall of each pipeline at 20 tokens" in page
    assert "points</b>" in page, "the budget where most questions differ"


def test_every_picture_has_a_text_alternative(outcome: Outcome) -> None:
    page = assert_stands_alone(render_report([outcome], circumstances(0)))
    labels = page.values("aria-label")
    assert len(labels) == page.tags.count("svg")
    assert labels[0] == (
        "evidence that arrives by tokens sent; at 40: whole documents 0%, sentences 100%, ours 100%"
    )
    assert "Who built the mill?: scores by rank" in str(labels[1])


def test_the_report_without_evidence_has_no_recall_chart(plan: Plan, tmp_path: Path) -> None:
    data = dataset()
    bare = replace(data, questions=tuple(replace(q, evidence=()) for q in data.questions))
    (found,) = evaluate(plan, [bare], HashEncoder(), tmp_path / "runs")
    page = render_report([found], circumstances(0))
    assert "village" in page
    assert "evidence that arrives" not in page
