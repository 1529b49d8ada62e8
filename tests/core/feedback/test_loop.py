import asyncio
import gc
import time
from contextlib import aclosing
from dataclasses import dataclass

import pytest

from precise_rag.errors import BudgetExceeded, ContextLengthError, InputError, LLMError, LLMServerError
from precise_rag.feedback import FeedbackController
from precise_rag.llm import Budget, load_llm
from precise_rag.testing import ScriptedLLM
from precise_rag.trace import Price, PriceTable, Trace
from precise_rag.types import Candidate, Completion
from support.documents import read_cases
from support.feedback import FirstK, answering
from support.velm import verdict as says

DOWN = LLMServerError("x: down")
QUESTION = "Where is Paris?"
TEXTS = ["Paris is in France.", "Lyon too.", "Rome is not.", "Oslo is far.", "Bern is near."]
CANDIDATES = [
    Candidate("d", 10 * n, 10 * n + 9, text, 0.9 - n / 10, "probability") for n, text in enumerate(TEXTS)
]


def loop(answers, judgements, *, k=2, budget=None, **options):
    controller = FeedbackController(max_rounds=options.pop("max_rounds", 3))
    answerer, judge = ScriptedLLM(answers, name="answerer"), ScriptedLLM(judgements, name="judge")
    return answering(answerer, judge, controller, budget, k=k, **options), answerer, judge


@pytest.mark.parametrize(("retries", "reply", "n"), [(0, DOWN, 2), (None, DOWN, 1), (2, "hm", 2)])
def test_a_judge_whose_client_has_tried_again_is_not_asked_again(retries, reply, n):
    engine, _, judge = loop(["a"], [reply] * 2)
    judge.max_retries = retries
    assert engine.answer(QUESTION, candidates=CANDIDATES).text == "a"
    assert len(judge.calls) == n


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
    first, *others = [(a.text, a.selection, a.judgement, a.rounds, a.note) for a in answers]
    assert others == [first] * 3
    return answers[0]


@pytest.mark.parametrize(
    ("answers", "judgements", "text", "note"),
    [
        *read_cases("judgements.json", "ends of the loop"),
        (["a", LLMServerError("x: down")], [says(4, 1)], "a", "round 2 has no draft: x: down"),
        (["a"], [LLMServerError("x: down")] * 2, "a", "the judge failed: x: down"),
        (["a"], [ValueError("bug")] * 2, "a", "the judge failed: judge: ValueError: bug"),
        (["a"], [ContextLengthError("x: too long")], "a", "the judge failed: x: too long"),
    ],
)
def test_the_loop_ends_with_the_best_draft_and_says_why(answers, judgements, text, note):
    answer = run_each_way(lambda: loop(answers, judgements, least=2))
    drafts = [draft.split("\n")[-1] for draft in answers if isinstance(draft, str)]
    assert (answer.text, answer.kind, answer.note) == (text, "generated", note)
    assert [turn.text for turn in answer.rounds] == drafts
    best = max(answer.rounds, key=lambda turn: turn.judgement.score or 0)
    assert (answer.judgement, answer.selection) == (best.judgement, best.selection)
    assert [c.text for c in answer.selection.kept] == TEXTS[: 2 + best.step]


@dataclass(frozen=True)
class Lazy(FirstK):
    """Selector that changes with every third step only."""

    def select(self, candidates, *, query="", step=0):
        return FirstK.select(self, candidates, query=query, step=int(step / 3))


@pytest.mark.parametrize(("verdicts", "reach", "kept", "note"), read_cases("judgements.json", "steps"))
def test_a_step_goes_on_until_the_selection_changes(verdicts, reach, kept, note):
    controller, drafts = FeedbackController(reach=reach), ScriptedLLM(["a", "b", "c"])
    engine = answering(drafts, ScriptedLLM(verdicts), controller, selector=Lazy(2))
    answer = engine.answer(QUESTION, candidates=CANDIDATES)
    assert ([len(turn.selection.kept) for turn in answer.rounds], answer.note) == (kept, note)


def test_more_context_goes_past_what_does_not_fit_into_the_tokens():
    big = Candidate("d", 500, 900, "word " * 80, 0.85, "probability")
    engine = answering(ScriptedLLM(["a", "b"]), ScriptedLLM([says(4, 1), says(9)]), k=1, max_tokens=60)
    answer = engine.answer(QUESTION, candidates=[CANDIDATES[0], big, *CANDIDATES[1:]])
    assert [[c.text for c in turn.selection.kept] for turn in answer.rounds] == [TEXTS[:1], TEXTS[:2]]
    texts = [Candidate("d", at, at + len(t), t, 0.9, "probability") for at, t in ((0, "So do."), (3, "do."))]
    models = ScriptedLLM(["a", "b"]), ScriptedLLM([says(4, 1), says(9)])
    answer = answering(*models, k=1, order="document").answer(QUESTION, candidates=[*texts, CANDIDATES[4]])
    assert [turn.step for turn in answer.rounds] == [0, 2]  # a part of what is shown shows nothing more


@pytest.mark.parametrize(
    ("first", "judgements", "calls", "score", "note"), read_cases("judgements.json", "drafts and verdicts")
)
def test_neither_a_draft_that_is_no_answer_nor_a_verdict_that_says_nothing_counts(
    first, judgements, calls, score, note
):
    prompts = {"judge": 'Reply like {"reason": "r", "score": 7, "adjustment": 1}'}
    answer = run_each_way(lambda: loop([first, "In France."], judgements, prompts=prompts))
    assert (answer.text, answer.kind, answer.judgement.score) == ("In France.", "generated", score)
    assert answer.note.startswith(note)
    assert len(answer.trace.calls) == calls


@pytest.mark.parametrize(
    ("drafts", "said", "note"), read_cases("judgements.json", "drafts that are no answer")
)
def test_what_was_found_is_the_answer_where_no_draft_is_one(drafts, said, note):
    answer = run_each_way(lambda: loop(drafts, [], max_rounds=2))
    assert (answer.kind, answer.text) == ("context", "\n\n".join([*said, *TEXTS[:3]]))
    assert answer.note == f"{note}, so no answer was written"
    assert [passage.text for passage in answer.passages] == TEXTS[:3]
    unjudged = answering(ScriptedLLM(drafts), controller=FeedbackController(max_rounds=0), k=1)
    assert unjudged.answer(QUESTION, candidates=CANDIDATES).kind == "context"
    *pieces, last = unjudged.stream(QUESTION, candidates=CANDIDATES, live_final=True)
    assert "".join(pieces) == last.text == drafts[1]
    assert last.note.startswith(note.split("; ")[0]) or drafts[0] != drafts[1]
    silent = answering(ScriptedLLM([" "]), controller=FeedbackController(max_rounds=0), k=1)
    *pieces, last = silent.stream(QUESTION, candidates=CANDIDATES, live_final=True)
    assert ("".join(pieces), last.kind) == (TEXTS[0], "context")


def test_a_draft_that_quotes_a_passage_behind_its_mark_is_the_answer_and_cites_it():
    quoting = ScriptedLLM(lambda messages: f"{messages[1].content.split()[0]}: Paris is in France.")
    engine = answering(quoting, controller=FeedbackController(max_rounds=0))
    answer = engine.answer(QUESTION, candidates=CANDIDATES)
    assert (answer.text, answer.kind) == ("Paris is in France. [1]", "generated")
    assert [passage.text for passage in answer.citations] == TEXTS[:1]


@pytest.mark.parametrize(
    ("failure", "error", "said"),
    [
        (LLMServerError("answerer: down"), LLMServerError, "answerer: down"),
        (KeyError("x"), LLMError, "answerer: KeyError"),
        (ContextLengthError("answerer: too long"), ContextLengthError, "too long"),
        (None, BudgetExceeded, "0 of 5 used"),
    ],
)
def test_without_a_first_draft_there_is_one_clear_error(failure, error, said):
    engine, _, judge = loop([failure], [], k=1, budget=None if failure else Budget(tokens=5))
    with pytest.raises(error, match=said):
        engine.answer(QUESTION, candidates=CANDIDATES)
    assert judge.calls == []


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
    limit, chosen = "context limit", "selection"
    assert stages == [(chosen, 4, 1), (limit, 2, 1), (limit, 1, 1), (chosen, 1, 2)]
    assert answer.trace.to_dict()["stages"][1]["note"].startswith("context limit, cut to 2 chunks")
    assert answer.note == (
        "context limit, cut to 2 chunks: answerer: too long; "
        "context limit, cut to 1 chunk: answerer: too long; "
        "the selection would not change at step +1"
    )


def test_both_models_see_the_options_and_given_instructions_in_place_of_ours():
    prompts = {"answer": "Sing.", "judge": "Rate."}
    engine, answerer, judge = loop(["B"], [says(9)], style="choice", prompts=prompts)
    answer = engine.answer(QUESTION, candidates=CANDIDATES, options=["Italy", "France"])
    assert (answer.text, answer.choice) == ("B", 1)
    for model, instructions in ((answerer, "Sing.\n\nThe user's message"), (judge, "Rate.")):
        assert model.calls[0].messages[0].content.startswith(instructions)
        assert "A. Italy\nB. France" in model.calls[0].text
    assert [call.prompt_version for call in answer.trace.calls] == ["answer/5/custom", "judge/3/custom"]
    other = answering(ScriptedLLM(["Z", says(9)])).answer("Q?", candidates=CANDIDATES, options=["a", "b"])
    assert (other.choice, other.note[:38]) == (None, "the answer names none of the options, ")
    with pytest.raises(InputError, match="with options"):
        engine.answer(QUESTION, candidates=CANDIDATES)


def test_a_cost_limit_without_the_prices_of_both_models_is_refused():
    with pytest.raises(InputError, match="no 'judge'"):
        loop(["a"], [], budget=Budget(cost=1.0), prices=PriceTable({"answerer": Price(1.0, 1.0)}))


@pytest.mark.parametrize(("limits", "drafts", "note"), read_cases("judgements.json", "used budgets"))
def test_a_used_budget_ends_the_loop_with_the_best_answer(limits, drafts, note):
    budget, prices = Budget(**limits), PriceTable(dict.fromkeys(("answerer", "judge"), Price(1.0, 1.0)))

    def replies(*texts):
        return [Completion(text, "", 600, 50) for text in texts]

    judgements = replies(says(8, 1), says(7, 1), says(9))
    answer = run_each_way(lambda: loop(replies(*"abc"), judgements, budget=budget, prices=prices))
    assert answer.text == "a"
    assert len(answer.rounds) == drafts
    assert answer.note.startswith(note)


@pytest.mark.parametrize(
    ("answers", "judgements", "pieces", "score"),
    [
        (["a", "b"], [says(8, 1), says(2, 1)], ["b"], 2),
        (["<think>\nHm.\n</think>\nIn France."], [says(10)], ["In ", "France."], 10),
    ],
)
async def test_the_live_final_draft_is_shown_before_it_is_judged_and_is_the_answer(
    answers, judgements, pieces, score
):
    def make():
        return loop(answers, judgements, max_rounds=len(answers))

    engine, _, judge = make()
    items = engine.stream(QUESTION, candidates=CANDIDATES, live_final=True)
    shown = [next(items) for _ in pieces]
    assert len(judge.calls) == len(answers) - 1
    (answer,) = items
    assert (shown, answer.text, answer.judgement.score) == (pieces, "".join(pieces), score)
    async with aclosing(make()[0].astream(QUESTION, candidates=CANDIDATES, live_final=True)) as items:
        assert [item async for item in items][:-1] == pieces


def test_long_thoughts_are_streamed_in_linear_time():
    def seconds(n):
        engine = answering(Thinking(n), controller=FeedbackController(max_rounds=0))
        started = time.process_time()
        *pieces, _ = engine.stream(QUESTION, candidates=CANDIDATES, live_final=True)
        assert "".join(pieces) == "In France."
        return time.process_time() - started

    seconds(10)
    assert seconds(24_000) < 12 * seconds(4_000)


class Thinking(ScriptedLLM):
    """Streams long thoughts before its answer."""

    def __init__(self, n):
        super().__init__([])
        self.n = n

    def stream(self, messages):
        yield from ("<th", "ink>", *["word > "] * self.n, "</thi", "nk>", "\n\n", "In ", "France.")


class Watched(ScriptedLLM):
    """Streams pieces without a completion at the end."""

    closed = False

    async def astream(self, messages):
        try:
            for word in ("In ", "", "France."):
                yield word
                await asyncio.sleep(0)
        finally:
            self.closed = True


async def test_a_stream_without_a_completion_is_estimated_and_one_that_is_left_is_closed():
    llm = Watched([])
    engine = answering(llm, controller=FeedbackController(max_rounds=0))
    *pieces, answer = [one async for one in engine.astream(QUESTION, candidates=CANDIDATES, live_final=True)]
    assert pieces == ["In ", "France."]
    assert answer.trace.calls[0].usage_estimated
    llm.closed = False
    async with aclosing(engine.astream(QUESTION, candidates=CANDIDATES, live_final=True)) as items:
        async for _ in items:
            break
    assert llm.closed


def test_the_trace_holds_stages_calls_and_rounds_and_shows_them_as_they_happen():
    seen = []
    prices = PriceTable({"answerer": Price(10.0, 30.0)})
    replies = [Completion("a", "", 1000, 100), Completion("b", "", 2000, 50)]
    engine, answerer, judge = loop(replies, [says(4, 1), says(9)], prices=prices)
    trace = Trace(QUESTION, observer=lambda record: seen.append(type(record).__name__))
    answer = engine.answer(QUESTION, candidates=CANDIDATES, trace=trace)
    assert answer.trace is trace
    assert seen == ["StageRecord", "CallRecord", "CallRecord", "RoundRecord"] * 2
    asked = ("answer", "answerer"), ("judge", "judge")
    assert [(c.role, c.model, c.round) for c in trace.calls] == [(*one, n) for n in (1, 2) for one in asked]
    assert trace.calls[0].cost == pytest.approx(0.013)
    more, few = trace.calls[2].overhead_tokens, trace.calls[0].overhead_tokens
    assert 0 < few < more <= few + 8  # one passage more
    assert trace.calls[1].cost is None
    assert trace.cost is None
    assert [(turn.number, turn.step, turn.decision) for turn in trace.rounds] == [
        (1, 0, "more context: step +1"),
        (2, 1, "accepted with 9 of 10"),
    ]
    assert trace.rounds[0].kept == ("d:0-9", "d:10-19")
    assert [sum(text in call.text for text in TEXTS) for call in answerer.calls] == [2, 3]
    assert "b" in judge.calls[1].messages[1].content
    assert (judge.calls[0].schema["title"], answerer.calls[0].schema) == ("judgement", None)
    assert [stage.settings for stage in trace.stages] == [{"step": 0}, {"step": 1}]


@pytest.mark.slow
def test_a_thousand_questions_leave_nothing_behind():
    def model(prompt: str) -> str:
        return says(9) if "adjustment" in prompt else "In France."

    engine, n_calls = answering(load_llm(model)), []

    def ask(n):
        answers = (engine.answer(f"{QUESTION} {i}", candidates=CANDIDATES) for i in range(n))
        n_calls.extend(len(answer.trace.calls) for answer in answers)
        gc.collect()
        return len(gc.get_objects())

    after_100, after_1100 = ask(100), ask(1000)
    assert after_1100 - after_100 < 100  # one question's trace alone is more than 20 objects
    assert sum(n_calls) == 2200
