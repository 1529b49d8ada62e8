"""The HTML report of an evaluation."""

import re
from dataclasses import replace
from pathlib import Path

from precise_rag.evaluation import Outcome, Plan, circumstances, evaluate, render_report
from precise_rag.testing import HashEncoder
from support.html import assert_stands_alone
from support.village import dataset


def test_the_report_shows_curves_and_the_evidence_that_was_sent(outcome: Outcome) -> None:
    page = render_report([outcome], circumstances(0))
    assert_stands_alone(page)
    assert page.count("<svg") > len(outcome.dataset.documents) // 2
    assert "<mark>The mill was built by Millson in &lt;1802&gt;.</mark>" in page
    assert "Won: 8 of 8 questions" in page
    assert "http" not in page
    assert "What each pipeline found" in page
    assert "Evidence that arrives within 20 tokens" in page
    assert "points</b>" in page, "the budget where most questions differ"


def test_failures_come_first_and_every_number_leads_to_its_trace(plan: Plan, tmp_path: Path) -> None:
    data = dataset()
    lost = data.questions[3]
    aside = replace(lost, evidence=(lost.evidence[0]._replace(doc_id=data.documents[0].id, start=0, end=3),))
    questions = tuple(aside if question is lost else question for question in data.questions)
    (found,) = evaluate(
        plan, [replace(data, questions=questions)], HashEncoder(), tmp_path / "runs", traces=True
    )
    page = render_report([found], circumstances(0), tmp_path)
    table = page.partition("What each pipeline found")[2]
    first, second = re.findall(r"<tr>(<td.*?)</tr>", table, re.DOTALL)[:2]
    recalls = [[int(n) for n in re.findall(r">(\d+)</a>", row)] for row in (first, second)]
    assert recalls[0][-1] < recalls[1][-1]
    assert lost.text in first
    addresses = re.findall(r'href="(runs/[^"]*)"', page)
    assert len(addresses) == len(questions) * len(plan.pipelines)
    for address in addresses:
        trace = (tmp_path / address).read_text()
        assert_stands_alone(trace)
        assert "pieces kept" in trace


def test_every_picture_has_a_text_alternative(outcome: Outcome) -> None:
    page = assert_stands_alone(render_report([outcome], circumstances(0)))
    labels = page.values("aria-label")
    assert len(labels) == page.tags.count("svg")
    assert labels[0] == (
        "evidence that arrives by tokens sent; at 40: whole documents 0%, sentences 100%, ours 100%"
    )
    assert labels[1] == labels[0], "the same picture for a phone"
    assert "Who built the mill?: scores by rank" in str(labels[2])


def test_the_report_without_evidence_has_no_recall_chart(plan: Plan, tmp_path: Path) -> None:
    data = dataset()
    bare = replace(data, questions=tuple(replace(q, evidence=()) for q in data.questions))
    (found,) = evaluate(plan, [bare], HashEncoder(), tmp_path / "runs")
    page = render_report([found], circumstances(0))
    assert "village" in page
    assert "evidence that arrives" not in page
