import pytest

from precise_rag.errors import InputError
from precise_rag.trace import Bill, CallRecord, Ledger, Trace


def test_a_ledger_sums_by_model_and_role_and_says_if_a_price_is_unknown():
    ledger = Ledger()
    for n in (1, 3):
        trace = Trace("q")
        trace.add(
            CallRecord("answer", "v", "big", 1.0, input_tokens=100 * n, output_tokens=10, cost=0.01 * n)
        )
        trace.add(CallRecord("judge", "v", "small", 1.0, input_tokens=50, output_tokens=5, cost=0.001))
        trace.add(CallRecord("judge", "v", "small", 1.0, error="LLMError: x"))
        ledger.add(trace)
    assert ledger.total == Bill(6, 500, 30, pytest.approx(0.042))
    assert ledger.by_model == {
        "big": Bill(2, 400, 20, pytest.approx(0.04)),
        "small": Bill(4, 100, 10, pytest.approx(0.002)),
    }
    assert set(ledger.by_role) == {"answer", "judge"}
    assert ledger.cost_per_question == pytest.approx(0.021)
    assert ledger.cost_efficiency(0.63) == pytest.approx(30.0)
    assert ledger.to_dict()["total"]["calls"] == 6
    ledger = Ledger()
    with pytest.raises(InputError, match="empty"):
        _ = ledger.cost_per_question
    trace = Trace("q")
    trace.add(CallRecord("answer", "v", "mine", 1.0, input_tokens=100))
    ledger.add(trace)
    assert ledger.total.cost is None
    assert ledger.cost_efficiency(0.5) is None
