import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from precise_rag.candidate_filters import DynamicThreshold, RelevanceFilter
from precise_rag.candidate_filters.relevance_scoring import Relevance, parse_score, parse_scores
from precise_rag.errors import LLMAuthenticationError, LLMConnectionError, LLMResponseError
from precise_rag.llm import Budget
from precise_rag.testing import ScriptedLLM
from precise_rag.trace import Trace
from precise_rag.types import Candidate, Message, Selection
from support.counted import Counted
from support.documents import read_cases
from support.velm import shown_texts

QUESTION = "When does the harbour gate open?"
TEXTS = read_cases("filters.json", "of the gate")
TRUTH = {"gate": 0.9, "ferry": 0.1, "bees": 0.2, "night": 0.6}


def candidates(names: Sequence[str] = tuple(TEXTS), texts: dict[str, str] = TEXTS) -> list[Candidate]:
    return [
        Candidate(name, 0, len(texts[name]), texts[name], 0.9 - i / 10, "probability", scores={"dense": 0.5})
        for i, name in enumerate(names)
    ]


def items(messages: Sequence[Message]) -> list[dict[str, object]]:
    """The right scores for the chunks of a batch prompt."""
    truth = {TEXTS[name]: score for name, score in TRUTH.items()}
    return [
        {"id": key, **dict.fromkeys(("base", "reflection", "critic"), truth.get(text, 0.0))}
        for key, text in shown_texts(messages).items()
    ]


def honest(messages: Sequence[Message]) -> str:
    return json.dumps({"scores": items(messages)})


def kept(selection: Selection) -> list[str]:
    return [c.doc_id for c in selection.kept]


def test_one_call_scores_a_batch_and_the_mean_decides() -> None:
    llm = ScriptedLLM(honest)
    selection = RelevanceFilter(llm).filter(QUESTION, candidates())
    assert len(llm.calls) == 1
    assert kept(selection) == ["gate", "night"]
    decided = ("0.90 reaches", "0.10 is under", "0.20 is under", "0.60 reaches")
    assert selection.reasons == tuple(f"relevance {how} 0.45, mean of 4 scores" for how in decided)
    gate = selection.kept[0]
    assert (gate.score, gate.score_scale) == (0.9, "probability")
    by_stage = {f"relevance_{stage}": 0.9 for stage in ("base", "reflection", "critic")}
    assert gate.scores == pytest.approx({"dense": 0.5, "relevance": 0.9, **by_stage})


@pytest.mark.parametrize(
    "written",
    [
        lambda scores: (
            f"Sure!\n```json\n{json.dumps({'scores': scores})}\n```\nHope {{this}} helps: 0.99 for all."
        ),
        lambda scores: json.dumps(scores[::-1]),
        lambda scores: "\n".join(json.dumps(item) for item in (*scores, *scores)),
    ],
    ids=["in prose", "in another order", "twice, one on a line"],
)
def test_odd_replies_give_the_same_scores(written: Callable[[list[dict[str, object]]], str]) -> None:
    expected = RelevanceFilter(ScriptedLLM(honest)).filter(QUESTION, candidates())
    odd = ScriptedLLM(lambda messages: written(items(messages)))
    assert RelevanceFilter(odd).filter(QUESTION, candidates()) == expected


@pytest.mark.parametrize("reply", [*read_cases("filters.json", "unreadable replies"), "{" * 3000])
def test_unreadable_replies_leave_chunks_unscored_under_the_policy(reply: str) -> None:
    trace = Trace(QUESTION)
    selection = RelevanceFilter(ScriptedLLM([reply, reply])).filter(QUESTION, candidates(), trace=trace)
    assert trace.notes == ["no chunk has a relevance score: the model gave no readable score, twice"]
    assert len(selection.kept) == 4
    assert set(selection.reasons) == {
        "unscored (the model gave no readable score, twice); such chunks are kept"
    }
    assert all("relevance" not in c.scores for c in selection.kept)
    halves = ScriptedLLM([reply, reply])
    assert RelevanceFilter(halves, batch_size=2).filter(QUESTION, candidates()) == selection
    assert len(halves.calls) == 2
    with pytest.raises(LLMResponseError, match="no chunk has a relevance score"):
        RelevanceFilter(ScriptedLLM([reply, reply]), unscored="drop").filter(QUESTION, candidates())


@pytest.mark.parametrize(
    ("policy", "expected"), [("keep", ["gate", "ferry", "night"]), ("drop", ["gate", "night"])]
)
def test_a_chunk_that_is_left_out_does_not_shift_the_others(policy: str, expected: list[str]) -> None:
    def without_the_ferry(messages: Sequence[Message]) -> str:
        texts = shown_texts(messages)
        return json.dumps([item for item in items(messages) if texts[str(item["id"])] != TEXTS["ferry"]])

    relevance = RelevanceFilter(ScriptedLLM(without_the_ferry), unscored=policy)
    assert kept(relevance.filter(QUESTION, candidates())) == expected


HOSTILE = read_cases("filters.json", "that give orders")


def test_chunks_that_give_orders_stay_data_and_change_no_other_score() -> None:
    texts = TEXTS | HOSTILE
    given = candidates(tuple(texts), texts)

    def echoing(messages: Sequence[Message]) -> str:
        assert set(shown_texts(messages).values()) == set(texts.values())
        system = messages[0].content
        assert not any(text in system for text in texts.values())
        return "\n".join(HOSTILE.values()) + honest(messages)

    selection = RelevanceFilter(ScriptedLLM(echoing)).filter(QUESTION, given)
    by_name = {d.candidate.doc_id: d.candidate.scores["relevance"] for d in selection.decisions}
    assert by_name == pytest.approx(TRUTH | dict.fromkeys(HOSTILE, 0.0))


def test_a_question_is_the_same_prompt_each_time_and_a_chunk_that_knows_its_ids_changes_them() -> None:
    llm = ScriptedLLM(honest)
    relevance = RelevanceFilter(llm)
    relevance.filter(QUESTION, candidates())
    relevance.filter(QUESTION, candidates())
    first, second = (shown_texts(call.messages) for call in llm.calls)
    assert first == second
    stolen = TEXTS | {"thief": json.dumps({"scores": items(llm.calls[0].messages)})}
    relevance.filter(QUESTION, candidates(tuple(stolen), stolen))
    assert not set(first) & set(shown_texts(llm.calls[2].messages))


def one_at_a_time(messages: Sequence[Message]) -> str:
    user = messages[1].content
    name = next(name for name, text in TEXTS.items() if text in user)
    lower = 0.1 * ("base: " in user) + 0.1 * ("reflection: " in user)
    return json.dumps({"score": max(0.0, TRUTH[name] - lower)})


def test_the_papers_three_calls_for_each_chunk() -> None:
    llm = ScriptedLLM(one_at_a_time)
    trace = Trace(QUESTION)
    selection = RelevanceFilter(llm, mode="single").filter(QUESTION, candidates(), trace=trace)
    assert len(llm.calls) == 12
    gate = selection.kept[0].scores
    assert (gate["relevance_base"], gate["relevance_reflection"]) == pytest.approx((0.9, 0.8))
    assert gate["relevance_critic"] == pytest.approx(0.7)
    assert gate["relevance"] == pytest.approx(0.8)
    assert kept(selection) == ["gate", "night"]
    assert [call.prompt_version for call in trace.calls[::4]] == [
        "relevance/2/base",
        "relevance/2/reflection",
        "relevance/2/critic",
    ]
    shy = ScriptedLLM(lambda m: "hm" if TEXTS["gate"] in m[1].content else one_at_a_time(m))
    selection = RelevanceFilter(shy, mode="single").filter(QUESTION, candidates())
    assert len(shy.calls) == 2 + 3 * 3
    assert selection.reasons[0].startswith("unscored")
    assert kept(selection) == ["gate", "night"]


def test_the_threshold_may_keep_some_that_are_under_it() -> None:
    rule = DynamicThreshold(min_score=0.0, min_keep=3)
    selection = RelevanceFilter(ScriptedLLM(honest), threshold=rule).filter(QUESTION, candidates())
    assert kept(selection) == ["gate", "bees", "night"]
    assert selection.reasons[2] == (
        "relevance 0.20 is under 0.45, mean of 4 scores; among the best 3 (min_keep)"
    )
    without_calls = RelevanceFilter(ScriptedLLM([]), unscored="drop", ask_threshold=True)
    assert without_calls.filter(QUESTION, []).decisions == ()


@pytest.mark.parametrize(("said", "expected"), [('{"score": 0.7}', ["gate"]), ("hm", ["gate", "night"])])
def test_the_model_may_name_the_threshold(said: str, expected: list[str]) -> None:
    def reply(messages: Sequence[Message]) -> str:
        return said if "0.9, 0.6, 0.2, 0.1" in messages[1].content else honest(messages)

    selection = RelevanceFilter(ScriptedLLM(reply), ask_threshold=True).filter(QUESTION, candidates())
    assert kept(selection) == expected


async def test_what_the_budget_has_no_room_for_is_unscored() -> None:
    llm = ScriptedLLM(honest)
    selection = RelevanceFilter(llm, batch_size=1, budget=Budget(calls=2)).filter(QUESTION, candidates())
    assert len(llm.calls) == 2
    assert [reason.split(" (")[0] for reason in selection.reasons] == [
        "relevance 0.90 reaches 0.50, mean of 2 scores",
        "relevance 0.10 is under 0.50, mean of 2 scores",
        "unscored",
        "unscored",
    ]
    late = RelevanceFilter(ScriptedLLM(honest, delay=60.0), budget=Budget(seconds=0.01))
    selection = await late.afilter(QUESTION, candidates())
    assert all(reason.startswith("unscored (") for reason in selection.reasons)


def test_a_failed_call_leaves_its_batch_unscored_and_a_refused_key_is_raised() -> None:
    replies = iter([LLMConnectionError("the server cannot be reached"), None])

    def reply(messages: Sequence[Message]) -> str | Exception:
        return next(replies) or honest(messages)

    relevance = RelevanceFilter(ScriptedLLM(reply), batch_size=2, max_concurrency=1)
    selection = relevance.filter(QUESTION, candidates())
    assert selection.reasons[0] == "unscored (the server cannot be reached); such chunks are kept"
    assert selection.reasons[3].startswith("relevance 0.60")
    with pytest.raises(LLMAuthenticationError):
        RelevanceFilter(ScriptedLLM([LLMAuthenticationError("no")])).filter(QUESTION, candidates())


@pytest.mark.parametrize("mode", ["batch", "single"])
async def test_async_gives_the_same_and_keeps_to_its_concurrency(mode: str) -> None:
    script = honest if mode == "batch" else one_at_a_time
    options = {"mode": mode, "batch_size": 1, "max_concurrency": 2}
    llm = Counted(script, delay=0.002)
    relevance = RelevanceFilter(llm, **options)
    selection = await relevance.afilter(QUESTION, candidates())
    assert selection == RelevanceFilter(ScriptedLLM(script), **options).filter(QUESTION, candidates())
    assert llm.most == 2


def test_contradictory_and_impossible_scores_are_left_out() -> None:
    good = {"id": "a", "base": 0.5, "reflection": "0.25", "critic": 0}
    other = {**good, "critic": 1}
    assert parse_scores(json.dumps([good]), ["a", "b"]) == {"a": Relevance(0.5, 0.25, 0.0)}
    assert parse_scores(json.dumps([good, other]), ["a"]) == {}
    quoting = json.dumps({"scores": [good, {**good, "id": "b", "quoted": other}]})
    assert list(parse_scores(quoting, ["a", "b"]).values()) == [Relevance(0.5, 0.25, 0.0)] * 2
    assert list(parse_scores(quoting[:-4], ["a", "b"])) == ["a"]
    for bad in (True, None, "high", 1.5, -0.1, 85, [0.5]):
        assert parse_scores(json.dumps([{**good, "base": bad}]), ["a"]) == {}
    assert parse_scores('[{"id": "a", "base": NaN, "reflection": 0, "critic": 0}]', ["a"]) == {}
    assert parse_scores(json.dumps([{**good, "id": 1}]), ["a", "1"]) == {}
    assert parse_scores('{"a":' * 5000, ["a"]) == {}


@pytest.mark.parametrize(("reply", "score"), read_cases("judgements.json", "single scores"))
def test_a_single_score_is_read_if_it_is_certain(reply: str, score: float | None) -> None:
    assert parse_score(reply) == score


@pytest.mark.parametrize(("bounds", "scores", "value", "reason"), read_cases("filters.json", "thresholds"))
def test_spread_scores_are_cut_at_their_mean_tight_ones_above_it_and_the_bounds_hold(
    bounds: dict[str, float], scores: list[float], value: float, reason: str
) -> None:
    assert DynamicThreshold(**bounds).of(scores) == (pytest.approx(value), reason)


@pytest.mark.parametrize(
    ("settings", "scores", "relevant"), read_cases("filters.json", "kept by a threshold")
)
def test_equal_scores_stand_or_fall_together_and_the_best_are_kept_but_nothing_under_the_floor(
    settings: dict[str, Any], scores: list[float], relevant: list[bool]
) -> None:
    rule = DynamicThreshold(**settings)
    assert rule.relevant(scores, rule.of(scores)) == relevant


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=20))
def test_the_best_is_kept_if_it_reaches_the_floor_and_order_does_not_matter(scores: list[float]) -> None:
    rule = DynamicThreshold()
    kept = rule.relevant(scores, rule.of(scores))
    best = max(scores)
    assert kept[scores.index(best)] == (best >= rule.min_score)
    again = rule.relevant(scores[::-1], rule.of(scores[::-1]))
    assert again[::-1] == kept
