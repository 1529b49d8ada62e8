"""Pipelines compared from end to end."""

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from precise_rag.errors import InputError
from precise_rag.evaluation import Outcome, Plan, evaluate, load_plan
from precise_rag.evaluation.report.tables import format_table
from precise_rag.evaluation.units import MODEL_SEARCHES, UnitIndex
from precise_rag.protocols import LLM, Encoder
from precise_rag.testing import HashEncoder, ScriptedLLM
from precise_rag.types import Candidate, Message
from support.village import TOPICS, dataset

pytest.importorskip("ir_measures")


def test_measures_tell_small_units_from_large_ones(outcome: Outcome) -> None:
    whole, sentences, ours = outcome.rows
    assert whole.means["recall@20"].mean == pytest.approx(0), "the evidence comes after more than 60 tokens"
    assert sentences.means["recall@20"].mean == pytest.approx(1)
    assert sentences.against_baseline["recall@20"].wins == len(TOPICS)
    assert sentences.against_baseline["recall@20"].p_value < 0.02
    assert whole.means["Hits@1"].mean == pytest.approx(0), (
        "reading order: the paragraph before the evidence comes first"
    )
    assert sentences.means["MRR@10"].mean == pytest.approx(1)
    assert ours.means["tokens"].mean < sentences.means["tokens"].mean
    assert ours.recall_per_1000_tokens > sentences.recall_per_1000_tokens
    assert whole.means["recall"].mean == pytest.approx(1)


def test_pipelines_over_one_index_share_it(outcome: Outcome) -> None:
    whole, sentences, ours = outcome.rows
    for fact in ("build_seconds", "cut_seconds", "n_units", "memory_mb"):
        assert ours.facts[fact] == pytest.approx(sentences.facts[fact])
    assert whole.facts["n_units"] < sentences.facts["n_units"]


def test_precision_counts_what_was_sent(outcome: Outcome) -> None:
    values = outcome.measured[0].values
    question = outcome.measurer.dataset.questions[0]
    visible = sum(not c.isspace() for d in outcome.dataset.documents for c in d.text)
    wanted = outcome.measurer.positions.locate(question.evidence)[0]
    assert values["precision"][0] == pytest.approx((wanted[1] - wanted[0]) / visible)


def test_a_pipeline_that_cannot_run_is_named_and_the_rest_run(tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(
        '[pipelines.a]\nsplit = {name = "sentences"}\n[pipelines.b]\nsplit = {name = "nowhere"}\n', "utf-8"
    )
    (found,) = evaluate(load_plan(path), [dataset()], HashEncoder(), tmp_path / "runs")
    assert [row.name for row in found.rows] == ["a"]
    assert "nowhere" in found.failed["b"]


class _AskedIndex(UnitIndex):
    """Asks a model for the topic of a question, and searches for that."""

    def __init__(self, documents: Any, units: Any, encoder: Encoder, llm: LLM) -> None:
        super().__init__(documents, units, encoder, "bm25")
        self._llm = llm

    def search(self, query: str, top_k: int = 10) -> list[Candidate]:
        return super().search(self._llm.complete([Message("user", f"The topic of: {query}")]).text, top_k)


def test_pipelines_that_ask_a_language_model_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(MODEL_SEARCHES, "asked", _AskedIndex)
    path = tmp_path / "plan.toml"
    path.write_text(
        '[pipelines.plain]\nsplit = {name = "langchain-recursive", chunk_size = 40}\ntop_k = 15\n'
        '[pipelines.asked]\nsplit = {name = "langchain-recursive", chunk_size = 40}\ntop_k = 15\n'
        'search = "asked"\n'
        '[pipelines.filtered]\nsplit = {name = "sentences"}\ntop_k = 15\nrelevance = {batch_size = 5}\n',
        "utf-8",
    )
    plan = load_plan(path)
    (without,) = evaluate(plan, [dataset()], HashEncoder(), tmp_path / "runs", budgets=(20, 40))
    assert set(without.failed) == {"asked", "filtered"}
    assert "--llm" in without.failed["asked"]

    def reply(messages: Sequence[Message]) -> str:
        text = messages[-1].content
        if text.startswith("The topic of:"):
            return next(t for t in TOPICS if t in text)
        keys = re.findall(r"chunk (\d+-\w+)$", text, re.M)
        return json.dumps(
            {"scores": [{"id": k, "base": 0.5, "reflection": 0.5, "critic": 0.5} for k in keys]}
        )

    llm = ScriptedLLM(reply, name="a-model")
    (found,) = evaluate(plan, [dataset()], HashEncoder(), tmp_path / "runs", budgets=(20, 40), llm=llm)
    plain, asked, filtered = found.rows
    assert not found.failed
    assert plain.means["llm calls"].mean == pytest.approx(0)
    assert asked.means["llm calls"].mean == pytest.approx(1)
    assert filtered.means["llm calls"].mean == pytest.approx(3)
    assert asked.means["llm tokens"].mean > 5
    assert asked.means["MRR@10"].mean == pytest.approx(1), "the topic is in one unit"
    assert "llm calls" in format_table(found.rows)
    n_calls = len(llm.calls)
    (again,) = evaluate(plan, [dataset()], HashEncoder(), tmp_path / "runs", budgets=(20, 40), llm=llm)
    assert len(llm.calls) == n_calls
    for row, before in zip(again.rows, found.rows, strict=True):
        for name, interval in before.means.items():
            assert tuple(row.means[name]) == pytest.approx(tuple(interval)), (row.name, name)


def test_a_dataset_without_questions_and_a_failing_baseline_are_refused(plan: Plan, tmp_path: Path) -> None:
    empty = replace(dataset(), questions=())
    with pytest.raises(InputError, match="dataset 'village' has no questions"):
        next(evaluate(plan, [empty], HashEncoder(), tmp_path / "runs"))
    path = tmp_path / "asks.toml"
    path.write_text('[pipelines.a]\nsplit = {name = "sentences"}\nrelevance = {}\n', "utf-8")
    with pytest.raises(InputError, match="the baseline 'a' cannot run"):
        next(evaluate(load_plan(path), [dataset()], HashEncoder(), tmp_path / "runs"))


def test_without_evidence_only_cost_is_measured(plan: Plan, tmp_path: Path) -> None:
    data = dataset()
    bare = replace(data, questions=tuple(replace(q, evidence=()) for q in data.questions))
    (found,) = evaluate(plan, [bare], HashEncoder(), tmp_path / "runs")
    assert set(found.rows[0].means) == {"tokens", "ms", "llm calls", "llm tokens"}
    assert "recall" not in format_table(found.rows).splitlines()[0].replace("recall/1k", "")
