import asyncio
import gc
import json
from contextlib import aclosing

import pytest

from precise_rag.errors import (
    BudgetExceeded,
    ContextLengthError,
    InputError,
    LLMError,
    LLMResponseError,
    LLMServerError,
)
from precise_rag.feedback import FeedbackController
from precise_rag.llm import Budget, load_llm
from precise_rag.prompts import NOT_IN_PASSAGES
from precise_rag.testing import ScriptedLLM
from precise_rag.trace import Ledger, Price, PriceTable, Trace
from precise_rag.types import Candidate, Completion
from support.feedback import answering

QUESTION = "Where is Paris?"
TEXTS = ["Paris is in France.", "Lyon too.", "Rome is not.", "Oslo is far.", "Bern is near."]
CANDIDATES = [
    Candidate("d", 10 * n, 10 * n + 9, text, 0.9 - n / 10, "probability") for n, text in enumerate(TEXTS)
]


def says(score, adjustment=0):
    return json.dumps({"reason": "so", "score": score, "adjustment": adjustment})


def loop(answers, judgements, *, k=2, budget=None, **options):
    controller = FeedbackController(max_rounds=options.pop("max_rounds", 3))
    answerer, judge = ScriptedLLM(answers, name="answerer"), ScriptedLLM(judgements, name="judge")
    return answering(answerer, judge, controller, budget, k=k, **options), answerer, judge


def run_each_way(make):
    """The Answer by run, arun, stream and astream, each on fresh models; all must agree."""

    async def stream():
        async with aclosing(make()[0].astream(QUESTION, candidates=CANDIDATES)) as items:
            return [item async for item in items]

    answers = [
        make()[0].answer(QUESTION, candidates=CANDIDATES),
        asyncio.run(make()[0].aanswer(QUESTION, candidates=CANDIDATES)),
    ]
    for *pieces, answer in (list(make()[0].stream(QUESTION, candidates=CANDIDATES)), asyncio.run(stream())):
        assert "".join(pieces) == answer.text
        answers.append(answer)
    first = answers[0]
    for answer in answers[1:]:
        assert (answer.text, answer.selection, answer.judgement, answer.rounds, answer.note) == (
            first.text,
            first.selection,
            first.judgement,
            first.rounds,
            first.note,
        )
    return first


def test_an_accepted_draft_is_the_answer():
    answer = run_each_way(lambda: loop(["In France."], [says(9)]))
    assert (answer.text, answer.kind, answer.note) == ("In France.", "generated", "accepted with 9 of 10")
    assert [c.text for c in answer.selection.kept] == TEXTS[:2]
    assert len(answer.rounds) == 1


def test_the_judge_moves_the_context_and_the_prompts_follow():
    def make():
        return loop(["a", "b", "c"], [says(4, 1), says(6, 1), says(9, 0)])

    answer = run_each_way(make)
    assert [(turn.step, turn.text, turn.judgement.score) for turn in answer.rounds] == [
        (0, "a", 4),
        (1, "b", 6),
        (2, "c", 9),
    ]
    assert answer.text == "c"
    engine, answerer, judge = make()
    engine.answer(QUESTION, candidates=CANDIDATES)
    assert [[text in call.text for text in TEXTS] for call in answerer.calls] == [
        [True, True, False, False, False],
        [True, True, True, False, False],
        [True, True, True, True, False],
    ]
    assert "b" in judge.calls[1].messages[1].content
    assert judge.calls[0].schema["title"] == "judgement"
    assert answerer.calls[0].schema is None


def test_the_best_draft_is_returned_not_the_last():
    answer = run_each_way(lambda: loop(["a", "b", "c"], [says(4, 1), says(8, 1), says(5, 1)]))
    assert (answer.text, answer.judgement.score, answer.note) == ("b", 8, "round 3 was the last")
    assert len(answer.selection.kept) == 3


def test_oscillation_stops_before_a_third_draft():
    answer = run_each_way(lambda: loop(["a", "b"], [says(6, 1), says(5, -1)]))
    assert answer.text == "a"
    assert "oscillate" in answer.note


def test_an_unchanged_selection_stops_before_another_draft():
    answer = run_each_way(lambda: loop(["a"], [says(6, 1)], k=5))
    assert answer.text == "a"
    assert answer.note == "the selection would not change at step +1"


@pytest.mark.parametrize(
    ("reach", "kept", "note"),
    [(1, [3], "the selection would not change at step +1"), (3, [3, 4], "accepted with 9 of 10")],
)
def test_a_reach_goes_on_until_the_selection_changes(reach, kept, note):
    answerer, judge = ScriptedLLM(["a", "b"]), ScriptedLLM([says(4, 1), says(9)])
    controller = FeedbackController(reach=reach)
    answer = answering(answerer, judge, controller, k=2, least=3).answer(QUESTION, candidates=CANDIDATES)
    assert [len(turn.selection.kept) for turn in answer.rounds] == kept
    assert answer.note == note


def test_the_papers_judgement_form_drives_the_same_loop():
    replies = ["Evaluation Score: 5\nContext Adjustment: -1", "Evaluation Score: 9\nContext Adjustment: -1"]
    answer = run_each_way(lambda: loop(["a", "b"], replies, judge_prompt="sage"))
    assert [turn.step for turn in answer.rounds] == [0, -1]
    assert answer.trace.calls[1].prompt_version == "judge/2/sage"


@pytest.mark.parametrize(
    ("judgements", "status", "note"),
    [
        (["hm", "well"], "unparsed", "the judgement could not be read"),
        ([LLMServerError("judge: down")] * 2, "failed", "the judge failed: judge: down"),
        ([ValueError("bug")] * 2, "failed", "the judge failed: judge: ValueError: bug"),
        ([ContextLengthError("judge: too long")], "failed", "the judge failed: judge: too long"),
    ],
)
def test_a_judge_that_fails_never_costs_the_answer(judgements, status, note):
    answer = run_each_way(lambda: loop(["In France."], judgements))
    assert (answer.text, answer.judgement.status, answer.note) == ("In France.", status, note)


def test_an_unreadable_judgement_is_asked_for_once_more():
    engine, _, judge = loop(["In France."], ["hm", says(9)])
    assert engine.answer(QUESTION, candidates=CANDIDATES).note == "accepted with 9 of 10"
    assert len(judge.calls) == 2


def test_a_later_draft_that_fails_leaves_the_earlier_answer():
    answer = run_each_way(lambda: loop(["a", LLMServerError("answerer: down")], [says(4, 1)]))
    assert (answer.text, answer.note) == ("a", "round 2 has no draft: answerer: down")


def test_without_a_first_draft_there_is_one_clear_error():
    for failure in (LLMServerError("answerer: down"), LLMResponseError("answerer: empty")):
        engine, _, judge = loop([failure], [])
        with pytest.raises(type(failure), match="answerer"):
            engine.answer(QUESTION, candidates=CANDIDATES)
        assert judge.calls == []


def test_another_librarys_error_is_an_llm_error():
    engine, *_ = loop([KeyError("x")], [])
    with pytest.raises(LLMError, match="answerer: KeyError"):
        engine.answer(QUESTION, candidates=CANDIDATES)


def test_fewer_chunks_are_tried_when_the_prompt_is_too_long():
    too_long = ContextLengthError("answerer: too long")
    answer = run_each_way(lambda: loop([too_long, too_long, "a"], [says(6, 1)], k=4))
    assert [c.text for c in answer.selection.kept] == TEXTS[:1]
    assert answer.selection.reasons[1:4] == (
        "the model's context fits 1 chunk",
        "the model's context fits 2 chunks",
        "the model's context fits 2 chunks",
    )
    stages = [(stage.name, len(stage.selection.kept), stage.round) for stage in answer.trace.stages]
    assert stages == [
        ("selection", 4, 1),
        ("context limit", 2, 1),
        ("context limit", 1, 1),
        ("selection", 1, 2),
    ]
    assert answer.trace.to_dict()["stages"][1]["note"].startswith("context limit, cut to 2 chunks")
    assert answer.note == (
        "context limit, cut to 2 chunks: answerer: too long; "
        "context limit, cut to 1 chunk: answerer: too long; "
        "the selection would not change at step +1"
    )


def test_one_chunk_that_is_too_long_is_an_error():
    engine, *_ = loop([ContextLengthError("answerer: too long")], [], k=1)
    with pytest.raises(ContextLengthError, match="too long"):
        engine.answer(QUESTION, candidates=CANDIDATES)


def test_when_nothing_is_kept_no_model_is_asked():
    engine, answerer, _ = loop([], [])
    answer = engine.answer(QUESTION, candidates=[])
    assert (answer.text, answer.kind) == (NOT_IN_PASSAGES, "context")
    assert answer.note == "no passage was kept, so no answer was written"
    assert answerer.calls == []


def test_no_judge_is_asked_with_no_rounds_of_feedback():
    engine, _, judge = loop(["a"], [], max_rounds=0)
    answer = engine.answer(QUESTION, candidates=CANDIDATES)
    assert (answer.text, answer.judgement, answer.note) == ("a", None, "judging is off")
    assert judge.calls == []


def test_one_model_does_both_by_default():
    llm = ScriptedLLM(["a", says(9)])
    assert answering(llm).answer(QUESTION, candidates=CANDIDATES).text == "a"
    assert len(llm.calls) == 2


def test_multiple_choice_shows_the_options_to_both():
    engine, answerer, judge = loop(["B"], [says(9)], style="choice")
    assert engine.answer(QUESTION, candidates=CANDIDATES, options=["Italy", "France"]).text == "B"
    assert "A. Italy\nB. France" in answerer.calls[0].text
    assert "A. Italy\nB. France" in judge.calls[0].text
    with pytest.raises(InputError, match="with options"):
        engine.answer(QUESTION, candidates=CANDIDATES)


def test_bad_settings_are_refused():
    llm = ScriptedLLM([])
    with pytest.raises(InputError, match="style must be one of open, short, choice, got 'long'"):
        answering(llm, style="long")
    with pytest.raises(InputError, match="judge_prompt must be one of json, sage, got 'x'"):
        answering(llm, judge_prompt="x")


def test_a_cost_limit_asks_for_the_prices_of_both_models_before_anything_is_paid():
    prices = PriceTable({"answerer": Price(1.0, 1.0)})
    with pytest.raises(InputError, match="no 'judge'"):
        loop(["a"], [], budget=Budget(cost=1.0), prices=prices)


def test_given_instructions_replace_ours():
    engine, answerer, judge = loop(["a"], [says(9)], prompts={"answer": "Sing.", "judge": "Rate."})
    trace = engine.answer(QUESTION, candidates=CANDIDATES).trace
    assert answerer.calls[0].messages[0].content.startswith("Sing.\n\nIn the user's message")
    assert judge.calls[0].messages[0].content.startswith("Rate.")
    assert [call.prompt_version for call in trace.calls] == ["answer/3/custom", "judge/2/custom"]


@pytest.mark.parametrize(
    ("budget", "drafts", "note"),
    [
        (Budget(calls=1), 1, "the answer is not judged: calls over budget: 1 of 1 used, 1 more needed"),
        (Budget(calls=3), 1, "round 2 has no draft: calls over budget: 2 of 3 used, 2 more needed"),
        (
            Budget(tokens=800),
            1,
            "the answer is not judged: tokens over budget: 650 of 800 used, the next prompt has about",
        ),
        (Budget(tokens=2700), 2, "round 3 has no draft: tokens over budget: 2600 of 2700 used"),
        (Budget(cost=0.0027), 2, "round 3 has no draft: dollars over budget: 0.002600 of 0.0027 used"),
    ],
)
def test_a_used_budget_ends_the_loop_with_the_best_answer(budget, drafts, note):
    prices = PriceTable({"answerer": Price(1.0, 1.0), "judge": Price(1.0, 1.0)})

    def reply(text):
        return Completion(text, "", 600, 50)

    answer = run_each_way(
        lambda: loop(
            [reply(text) for text in "abc"],
            [reply(says(8, 1)), reply(says(7, 1)), reply(says(9))],
            budget=budget,
            prices=prices,
        )
    )
    assert answer.text == "a"
    assert len(answer.rounds) == drafts
    assert answer.note.startswith(note)


def test_a_budget_too_small_for_a_first_draft_is_an_error():
    engine, answerer, _ = loop(["a"], [], budget=Budget(tokens=5))
    with pytest.raises(BudgetExceeded, match="the next prompt has about"):
        engine.answer(QUESTION, candidates=CANDIDATES)
    assert answerer.calls == []


async def test_a_call_that_outlasts_the_seconds_is_cut_off():
    answerer, judge = ScriptedLLM(["a"]), ScriptedLLM([says(9)], delay=30)
    answer = await answering(answerer, judge, budget=Budget(seconds=0.5)).aanswer(
        QUESTION, candidates=CANDIDATES
    )
    assert (answer.text, answer.note) == (
        "a",
        "the answer is not judged: seconds over budget: all 0.5 used",
    )
    slow = answering(ScriptedLLM(["a"], delay=30), budget=Budget(seconds=0.05))
    with pytest.raises(BudgetExceeded, match=r"all 0\.05 used"):
        await slow.aanswer(QUESTION, candidates=CANDIDATES)
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_cancelling_stops_the_call_in_flight():
    answerer = ScriptedLLM(["a"], delay=30)
    task = asyncio.create_task(answering(answerer).aanswer(QUESTION, candidates=CANDIDATES))
    await asyncio.sleep(0.02)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert answerer.calls == []
    assert asyncio.all_tasks() == {asyncio.current_task()}


def test_a_live_final_draft_is_shown_before_it_is_judged():
    engine, _, judge = loop(["In sunny France."], [says(3, 1)], max_rounds=1)
    items = engine.stream(QUESTION, candidates=CANDIDATES, live_final=True)
    assert [next(items) for _ in range(3)] == ["In ", "sunny ", "France."]
    assert judge.calls == []
    (answer,) = items
    assert (answer.text, answer.judgement.score) == ("In sunny France.", 3)


async def test_the_live_final_draft_is_the_answer_whatever_its_score():
    def make():
        return loop(["a", "b"], [says(8, 1), says(2, 1)], max_rounds=2)[0]

    assert make().answer(QUESTION, candidates=CANDIDATES).text == "a"
    *pieces, answer = make().stream(QUESTION, candidates=CANDIDATES, live_final=True)
    assert (pieces, answer.text, answer.judgement.score) == (["b"], "b", 2)
    async with aclosing(make().astream(QUESTION, candidates=CANDIDATES, live_final=True)) as items:
        assert [item async for item in items][:-1] == ["b"]


async def test_an_early_accepted_draft_is_replayed_in_live_mode_too():
    def make():
        return loop(["In France."], [says(10)])[0]

    *pieces, answer = make().stream(QUESTION, candidates=CANDIDATES, live_final=True)
    assert (pieces, answer.text) == (["In ", "France."], "In France.")
    assert [item async for item in make().astream(QUESTION, candidates=CANDIDATES, live_final=True)][
        :-1
    ] == pieces


class BreaksOff(ScriptedLLM):
    def stream(self, messages):
        yield "In "
        raise LLMServerError("answerer: gone")

    async def astream(self, messages):
        yield "In "
        raise LLMServerError("answerer: gone")


async def test_a_live_draft_that_breaks_off_is_an_error_and_not_another_answer():
    engine = answering(BreaksOff([]), controller=FeedbackController(max_rounds=0))
    items = engine.stream(QUESTION, candidates=CANDIDATES, live_final=True)
    assert next(items) == "In "
    with pytest.raises(LLMServerError, match="gone"):
        next(items)
    async with aclosing(engine.astream(QUESTION, candidates=CANDIDATES, live_final=True)) as pieces:
        with pytest.raises(LLMServerError, match="gone"):
            assert [piece async for piece in pieces] == []


class OnlyPieces(ScriptedLLM):
    def stream(self, messages):
        yield from ("In ", "", "France.")


def test_a_stream_without_a_completion_is_estimated():
    engine = answering(OnlyPieces([]), controller=FeedbackController(max_rounds=0))
    *pieces, answer = engine.stream(QUESTION, candidates=CANDIDATES, live_final=True)
    assert (pieces, answer.text) == (["In ", "France."], "In France.")
    assert answer.trace.calls[0].usage_estimated


class Watched(ScriptedLLM):
    closed = False

    async def astream(self, messages):
        try:
            for word in ("In ", "France."):
                yield word
                await asyncio.sleep(0)
        finally:
            self.closed = True


async def test_leaving_a_stream_early_closes_the_models_stream():
    llm = Watched([])
    engine = answering(llm, controller=FeedbackController(max_rounds=0))
    async with aclosing(engine.astream(QUESTION, candidates=CANDIDATES, live_final=True)) as items:
        async for _ in items:
            break
    assert llm.closed


def test_the_trace_holds_stages_calls_and_rounds_and_shows_them_as_they_happen():
    seen = []
    prices = PriceTable({"answerer": Price(10.0, 30.0)})
    replies = [Completion("a", "", 1000, 100), Completion("b", "", 2000, 50)]
    engine, *_ = loop(replies, [says(4, 1), says(9)], prices=prices)
    trace = Trace(QUESTION, observer=lambda record: seen.append(type(record).__name__))
    answer = engine.answer(QUESTION, candidates=CANDIDATES, trace=trace)
    assert answer.trace is trace
    assert seen == ["StageRecord", "CallRecord", "CallRecord", "RoundRecord"] * 2
    assert [(call.role, call.model, call.round) for call in trace.calls] == [
        ("answer", "answerer", 1),
        ("judge", "judge", 1),
        ("answer", "answerer", 2),
        ("judge", "judge", 2),
    ]
    assert trace.calls[0].cost == pytest.approx(0.013)
    assert trace.calls[1].cost is None
    assert trace.cost is None
    assert [(turn.number, turn.step, turn.decision) for turn in trace.rounds] == [
        (1, 0, "more context: step +1"),
        (2, 1, "accepted with 9 of 10"),
    ]
    assert trace.rounds[0].kept == ("d:0-9", "d:10-19")
    assert [stage.settings for stage in trace.stages] == [{"step": 0}, {"step": 1}]


@pytest.mark.slow
def test_a_thousand_questions_leave_nothing_behind():
    def model(prompt: str) -> str:
        return says(9) if "adjustment" in prompt else "In France."

    engine, ledger = answering(load_llm(model)), Ledger()

    def ask(n):
        for i in range(n):
            ledger.add(engine.answer(f"{QUESTION} {i}", candidates=CANDIDATES).trace)
        gc.collect()
        return len(gc.get_objects())

    after_100, after_1100 = ask(100), ask(1000)
    assert after_1100 - after_100 < 100  # one question's trace alone is more than 20 objects
    assert ledger.total.calls == 2200
