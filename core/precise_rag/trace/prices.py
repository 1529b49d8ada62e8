"""What a call costs (SAGE, section II-B, equation 1), from a table that users can edit."""

import re
import tomllib
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from precise_rag.errors import InputError


class Price(NamedTuple):
    """US dollars for a million tokens."""

    input: float
    output: float


def call_cost(input_tokens: int, output_tokens: int, price: Price) -> float:
    """Dollars for one call: I_t * c_i + O_t * c_o.

    Source: SAGE, section II-B, eq. (1), with prices per million tokens.

    >>> call_cost(1000, 100, Price(input=10.0, output=30.0))
    0.013
    """
    return (input_tokens * price.input + output_tokens * price.output) / 1e6


def cost_efficiency(quality: float, cost: float) -> float:
    """Quality for a dollar: accuracy, F1 or any other metric, over the cost of the answers.

    Raises InputError unless the cost is positive: what is free has no efficiency.
    Source: SAGE, section II-C, eq. (2).
    """
    if cost <= 0:
        raise InputError(f"cost is {cost}; cost efficiency needs a positive cost")
    return quality / cost


class PriceTable:
    """Prices by model name.

    prices: name to Price. A name also stands for its dated versions: "gpt-4o" prices
    "gpt-4o-2024-08-06" as well, unless that has a row of its own. `PriceTable.load()` reads the packaged
    table, and `PriceTable.load(path)` lays a file of the same form over it.
    """

    def __init__(self, prices: Mapping[str, Price]) -> None:
        self._prices = dict(prices)

    @classmethod
    def load(cls, path: str | Path | None = None) -> "PriceTable":
        """The packaged table with the tables of `path` over it. Raises InputError for a bad file."""
        prices = _parsed(files("precise_rag.trace").joinpath("prices.toml").read_text("utf-8"), "prices.toml")
        if path is not None:
            try:
                text = Path(path).read_text("utf-8")
            except (OSError, UnicodeDecodeError) as error:
                raise InputError(f"cannot read the price table {path}: {error}") from error
            prices |= _parsed(text, str(path))
        return cls(prices)

    def price(self, model: str) -> Price | None:
        """The price of a model, or None where the table has none; never a guess."""
        if model in self._prices:
            return self._prices[model]
        name = _VERSION.sub("", model)
        return self._prices.get(name)

    def cost(self, model: str, input_tokens: int, output_tokens: int) -> float | None:
        """Dollars for one call, or None for a model without a price."""
        price = self.price(model)
        return None if price is None else call_cost(input_tokens, output_tokens, price)


_VERSION = re.compile(r"-(?:\d{4}-\d{2}-\d{2}|\d{8}|\d{4}|latest)$")


def _parsed(text: str, name: str) -> dict[str, Price]:
    try:
        return {
            model: Price(float(row["input"]), float(row["output"]))
            for model, row in tomllib.loads(text).items()
        }
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"{name} is no price table ({error}); expected, for each model: "
            '["model-name"] input = dollars per million tokens, output = the same'
        ) from error
