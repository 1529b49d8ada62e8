from precise_rag.feedback import FeedbackController, FeedbackLoop, estimate_cost
from precise_rag.testing import ScriptedLLM
from precise_rag.tokens import estimate_prompt_tokens
from precise_rag.trace import Bill, Price, PriceTable
from precise_rag.types import Candidate, Selection

QUESTION = "Where is Paris?"
PRICES = PriceTable({"big": Price(10.0, 30.0), "small": Price(1.0, 2.0)})


def select(min_k):
    candidates = (Candidate("d", n, n + 1, "word " * 40, 0.5, "probability") for n in range(20))
    return Selection.of((c, n <= min_k, "rank") for n, c in enumerate(candidates, start=1))


def loop(replies=(), judgements=(), **options):
    answerer, judge = ScriptedLLM(replies, name="big"), ScriptedLLM(judgements, name="small")
    return FeedbackLoop(answerer, judge, FeedbackController(min_k=4, **options), prices=PRICES)


def test_the_least_is_what_one_accepted_round_uses():
    engine = loop(["word " * 150], ['{"score": 9, "adjustment": 0}'])
    estimate = estimate_cost(engine, QUESTION, select, answer_tokens=150, judgement_tokens=14)
    trace = engine.run(QUESTION, select).trace
    assert (estimate.least.calls, estimate.least.output_tokens) == (2, 164)
    assert abs(estimate.least.input_tokens - trace.input_tokens) <= 8
    assert abs(estimate.least.cost - trace.cost) < 1e-4


def test_the_most_is_every_round_asking_for_more():
    estimate = estimate_cost(loop(), QUESTION, select)
    assert estimate.most.calls == 6
    assert estimate.most.input_tokens > 3 * estimate.least.input_tokens
    assert estimate.most.cost > 3 * estimate.least.cost


def test_nothing_is_asked_and_an_unknown_price_stays_unknown():
    engine = loop()
    estimate_cost(engine, QUESTION, select)
    assert engine.llm.calls == []
    engine.prices = PriceTable({})
    assert estimate_cost(engine, QUESTION, select).most.cost is None


def test_without_feedback_there_is_one_call_and_without_context_none():
    estimate = estimate_cost(loop(max_rounds=0), QUESTION, select)
    assert estimate.least == estimate.most
    assert estimate.least.calls == 1
    assert estimate_cost(loop(), QUESTION, lambda min_k: Selection()) == (Bill(), Bill())


def test_the_estimate_counts_the_real_prompt():
    engine = loop(["x"], max_rounds=0)
    estimate = estimate_cost(engine, QUESTION, select)
    engine.run(QUESTION, select)
    assert estimate.least.input_tokens == estimate_prompt_tokens(engine.llm.calls[0].messages)
