"""Answers from the text that pipelines kept."""

import json
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from precise_rag.errors import InputError, LLMConnectionError
from precise_rag.evaluation import Outcome, answer_questions, evaluate, load_plan
from precise_rag.evaluation.report.tables import format_answers
from precise_rag.testing import HashEncoder, ScriptedLLM
from support.alike import assert_alike
from support.village import TOPICS, dataset

pytest.importorskip("ir_measures")
pytest.importorskip("rouge_score")


def test_answers_are_scored_priced_and_kept(outcome: Outcome) -> None:

    def reply(messages: Any) -> str:
        text: str = messages[-1].content
        name = text.rsplit("Who built the ", 1)[1].split("?")[0]
        return f"{name.title()}son" if f"built by {name.title()}son" in text else "unknown"

    llm = ScriptedLLM(reply, name="gpt-4o-mini")
    answered = answer_questions(outcome, llm)
    assert [row.means["EM"].mean for row in answered.answers] == pytest.approx([1, 1, 1])
    whole, sentences, _ = answered.answers
    assert sentences.input_tokens < whole.input_tokens
    assert sentences.cost_efficiency is not None
    assert whole.cost_efficiency is not None
    assert sentences.cost_efficiency > whole.cost_efficiency
    n_calls = len(llm.calls)
    again = answer_questions(outcome, llm)
    assert len(llm.calls) == n_calls == 3 * len(TOPICS)
    assert_alike([row._asdict() for row in again.answers], [row._asdict() for row in answered.answers])
    assert "quality/$" in format_answers(again.answers)
    record = json.loads(json.dumps(again.to_dict()))["answers"][0]
    assert record["means"]["EM"] == pytest.approx([1, 1, 1])


def test_a_failing_model_is_asked_no_further_and_its_answers_are_kept(outcome: Outcome) -> None:
    asked, refused = [], threading.Event()

    def reply(messages: Any) -> Any:
        asked.append(messages)
        if "Who built the mill?" in messages[-1].content:
            refused.set()
            return LLMConnectionError("the server is gone")
        refused.wait(5)
        return "somebody"

    one = replace(outcome, runs=outcome.runs[:1], rows=outcome.rows[:1], measured=outcome.measured[:1])
    with pytest.raises(LLMConnectionError, match="gone"):
        answer_questions(one, ScriptedLLM(reply, name="gpt-4o-mini"))
    n_kept = len(asked) - 1
    llm = ScriptedLLM(lambda _: "somebody", name="gpt-4o-mini")
    answered = answer_questions(one, llm)
    assert len(llm.calls) == len(TOPICS) - n_kept
    assert answered.answers[0].questions == len(TOPICS)


def test_feedback_asks_again_with_more_context(tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(
        '[pipelines.fixed]\nsplit = {name = "sentences"}\nfeedback = {max_rounds = 2}\n'
        '[pipelines.once]\nsplit = {name = "sentences"}\n',
        "utf-8",
    )
    one = replace(dataset(), questions=dataset().questions[:1])
    (found,) = evaluate(load_plan(path), [one], HashEncoder(), tmp_path / "runs", budgets=(40,))

    def reply(messages: Any) -> str:
        if "score" in messages[0].content.lower():
            score = 9 if "\nmillson\n" in messages[-1].content else 3
            return f'{{"score": {score}, "adjustment": 1}}'
        return "millson" if messages[-1].content.count("passage") > 2 else "nobody"

    llm = ScriptedLLM(reply, name="gpt-4o-mini")
    looped, once = answer_questions(found, llm).answers
    assert (looped.means["EM"].mean, once.means["EM"].mean) == pytest.approx((1, 1))
    assert looped.input_tokens > once.input_tokens
    assert looped.cost is not None
    assert once.cost is not None
    assert looped.cost > once.cost


def test_questions_without_answers_are_refused(outcome: Outcome) -> None:
    bare = replace(dataset(), questions=tuple(replace(q, answers=()) for q in dataset().questions))
    outcome.measurer.dataset = bare
    with pytest.raises(InputError, match='no question has "answers"'):
        answer_questions(outcome, ScriptedLLM([]))
