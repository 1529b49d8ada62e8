import pytest

from precise_rag.errors import BudgetExceeded, InputError
from precise_rag.llm import Budget


@pytest.mark.parametrize(
    ("budget", "message"),
    [
        (Budget(calls=1), "1 of 1 used, 1 more needed"),
        (Budget(tokens=110), "100 of 110 used, 20 more needed"),
        (Budget(cost=0.011), "0.01 of 0.011 used, 0.002 more needed"),
    ],
)
def test_a_budget_refuses_the_call_that_would_pass_it_and_allows_one_that_fits_exactly(budget, message):
    spending = budget.start()
    spending.check("m", 20, 0.002)
    spending.add(100, 0.01)
    with pytest.raises(BudgetExceeded, match=message):
        spending.check("m", 20, 0.002)
    Budget(calls=1, tokens=20, cost=0.5).start().check("m", 20, 0.5)


def test_seconds_that_are_over_end_the_budget(monkeypatch):
    now = 0.0
    monkeypatch.setattr("precise_rag.llm.budget.time.monotonic", lambda: now)
    spending = Budget(seconds=5).start()
    now = 4.0
    spending.check("m", 1, None)
    assert spending.seconds_left == pytest.approx(1.0)
    now = 6.0
    with pytest.raises(BudgetExceeded, match="all 5 used"):
        spending.check("m", 1, None)


def test_a_cost_limit_needs_a_price():
    with pytest.raises(InputError, match="no 'my-model'"):
        Budget(cost=1.0).start().check("my-model", 10, None)
