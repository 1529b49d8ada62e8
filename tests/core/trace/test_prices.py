import pytest

from precise_rag.errors import InputError
from precise_rag.trace import Price, PriceTable, call_cost


def test_equation_1_with_the_papers_example_prices_and_equation_2_gives_its_table_xi():
    """Accuracy over tokens, relative to SAGE's: its column "relative cost efficiency"."""
    # GPT-4 at 10 and 30 dollars a million: 2,000 * 10e-6 + 500 * 30e-6
    assert call_cost(2000, 500, Price(10.0, 30.0)) == pytest.approx(0.035)
    rows = {"BM25": (140699, 0.65), "DPR": (142008, 0.70), "SBERT": (140888, 0.675), "SAGE": (104939, 0.75)}
    price = Price(0.15, 0.60)
    efficiency = {name: accuracy / call_cost(tokens, 0, price) for name, (tokens, accuracy) in rows.items()}
    relative = {name: value / efficiency["SAGE"] for name, value in efficiency.items()}
    expected = {"BM25": 0.646, "DPR": 0.690, "SBERT": 0.670, "SAGE": 1.0}  # the paper: 0.689 for DPR
    assert relative == pytest.approx(expected, abs=5e-4)


def test_the_packaged_table_covers_dated_versions_and_a_users_file_is_laid_over_it(tmp_path):
    table = PriceTable.load()
    assert table.price("gpt-4o-mini") == Price(0.15, 0.60)
    assert table.price("gpt-4o-mini-2024-07-18") == Price(0.15, 0.60)
    assert table.price("gpt-4o-mini-audio") is None
    assert table.cost("gpt-4o-mini", 1_000_000, 1_000_000) == pytest.approx(0.75)
    assert table.cost("my-model", 1, 1) is None
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
    with pytest.raises(InputError, match=r"prices\.toml is not a price table"):
        PriceTable.load(file)
    with pytest.raises(InputError, match="nowhere"):
        PriceTable.load(tmp_path / "nowhere")
