import pytest

from precise_rag.errors import BudgetExceeded, InputError
from precise_rag.llm import Budget
from precise_rag.tokens import estimate_prompt_tokens, estimate_tokens
from precise_rag.trace import Price, PriceTable, call_cost, cost_efficiency
from precise_rag.types import Message


def test_equation_1_with_the_papers_example_prices():
    # GPT-4 at 10 and 30 dollars a million: 2,000 * 10e-6 + 500 * 30e-6
    assert call_cost(2000, 500, Price(10.0, 30.0)) == pytest.approx(0.035)


def test_equation_2_gives_the_papers_table_xi():
    """Accuracy over tokens, relative to SAGE's: its column "relative cost efficiency"."""
    rows = {"BM25": (140699, 0.65), "DPR": (142008, 0.70), "SBERT": (140888, 0.675), "SAGE": (104939, 0.75)}
    price = Price(0.15, 0.60)
    efficiency = {
        name: cost_efficiency(accuracy, call_cost(tokens, 0, price))
        for name, (tokens, accuracy) in rows.items()
    }
    relative = {name: round(value / efficiency["SAGE"], 3) for name, value in efficiency.items()}
    assert relative == {"BM25": 0.646, "DPR": 0.690, "SBERT": 0.670, "SAGE": 1.0}  # the paper: 0.689 for DPR


def test_what_is_free_has_no_efficiency():
    with pytest.raises(InputError, match="positive cost"):
        cost_efficiency(0.7, 0.0)


def test_the_packaged_table_knows_dated_versions_and_guesses_nothing():
    table = PriceTable.load()
    assert table.price("gpt-4o-mini") == Price(0.15, 0.60)
    assert table.price("gpt-4o-mini-2024-07-18") == Price(0.15, 0.60)
    assert table.price("gpt-4o-mini-audio") is None
    assert table.cost("gpt-4o-mini", 1_000_000, 1_000_000) == pytest.approx(0.75)
    assert table.cost("my-model", 1, 1) is None


def test_a_file_of_ones_own_lies_over_the_packaged_table(tmp_path):
    file = tmp_path / "prices.toml"
    file.write_text('["my-model"]\ninput = 1\noutput = 2\n["gpt-4o"]\ninput = 9.0\noutput = 9.0\n')
    table = PriceTable.load(file)
    assert table.price("my-model") == Price(1.0, 2.0)
    assert table.price("gpt-4o") == Price(9.0, 9.0)
    assert table.price("gpt-4o-mini") == Price(0.15, 0.60)


@pytest.mark.parametrize("text", ["[", "x = 1", '["m"]\ninput = 1', '["m"]\ninput = "a"\noutput = 1'])
def test_a_bad_file_is_named(tmp_path, text):
    file = tmp_path / "prices.toml"
    file.write_text(text)
    with pytest.raises(InputError, match=r"prices\.toml is no price table"):
        PriceTable.load(file)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(InputError, match="nowhere"):
        PriceTable.load(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("budget", "message"),
    [
        (Budget(calls=1), "1 calls of 1 are used and 1 more are needed"),
        (Budget(tokens=110), "100 tokens are used and the next prompt has about 20"),
        (Budget(cost=0.011), r"\$0.010000 is spent and the next prompt costs about \$0.002000"),
    ],
)
def test_a_budget_refuses_the_call_that_would_pass_it(budget, message):
    spending = budget.start()
    spending.check("m", 20, 0.002)
    spending.add(100, 0.01)
    with pytest.raises(BudgetExceeded, match=message):
        spending.check("m", 20, 0.002)


def test_a_call_that_fits_exactly_is_allowed():
    spending = Budget(calls=2, tokens=120, cost=1.5).start()
    spending.add(100, 1.0)
    spending.check("m", 20, 0.5)


def test_seconds_that_are_over_end_the_budget(monkeypatch):
    now = 0.0
    monkeypatch.setattr("precise_rag.llm.budget.time.monotonic", lambda: now)
    spending = Budget(seconds=5).start()
    now = 4.0
    spending.check("m", 1, None)
    assert spending.seconds_left == 1.0
    now = 6.0
    with pytest.raises(BudgetExceeded, match="5 seconds"):
        spending.check("m", 1, None)


def test_a_cost_limit_needs_a_price():
    with pytest.raises(InputError, match="no 'my-model'"):
        Budget(cost=1.0).start().check("my-model", 10, None)


@pytest.mark.parametrize("name", ["calls", "tokens", "seconds", "cost"])
def test_a_budget_of_nothing_is_refused(name):
    with pytest.raises(InputError, match=f"{name} is 0"):
        Budget(**{name: 0})


def test_token_estimates():
    assert estimate_tokens("") == 0
    assert estimate_tokens("a" * 400) == 67  # one for every six letters
    assert estimate_tokens("巴黎在法国") == 5
    assert estimate_tokens("река") == 2  # one for every two letters of another alphabet
    assert estimate_tokens("Eels, it's 1990.") == 7
    assert estimate_prompt_tokens((Message("user", "a" * 40),)) == 11
