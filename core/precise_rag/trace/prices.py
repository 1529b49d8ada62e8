"""Prices of models, and the cost of a call (SAGE, section II-B, equation 1)."""

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from precise_rag._data import packaged_toml
from precise_rag.checks import check_number, of_kind
from precise_rag.errors import InputError

_VERSION = re.compile(r"-(?:\d{4}-\d{2}-\d{2}|\d{8}|\d{4}|latest)$")


class Price(NamedTuple):
    """US dollars per million tokens of prompt (`input`) and reply (`output`)."""

    input: float
    output: float


def call_cost(input_tokens: int, output_tokens: int, price: Price) -> float:
    """Compute the dollars for one call: I_t * c_i + O_t * c_o.

    Source: SAGE, section II-B, eq. (1), with prices per million tokens.

    >>> call_cost(1000, 100, Price(input=10.0, output=30.0))
    0.013
    """
    return (input_tokens * price.input + output_tokens * price.output) / 1e6


class PriceTable:
    """Prices by model name.

    prices: name to Price. A name also covers its dated versions: "gpt-4o" prices "gpt-4o-2024-08-06",
        unless the table has a row for that version.

    `PriceTable.load()` reads the packaged table; `PriceTable.load(path)` adds your own prices to it.
    Raises InputError if a price is not a number of at least 0.
    """

    def __init__(self, prices: Mapping[str, Price]) -> None:
        of_kind("prices", prices, Mapping)
        for model, price in prices.items():
            of_kind(f"the price of {model!r}", price, Price)
            for name, dollars in price._asdict().items():
                check_number(f"the {name} price of {model!r}", dollars, least=0)
        self._prices = dict(prices)

    @classmethod
    def load(cls, path: str | Path | None = None) -> "PriceTable":
        """Load the packaged table, with the prices of a TOML file laid over it.

        path: optional; for each model a table ["model-name"] with input and output, in dollars per million
            tokens.

        Raises InputError for a file that cannot be read.
        """
        try:
            own = {} if path is None else tomllib.loads(Path(path).read_text("utf-8"))
            rows = packaged_toml("trace/prices.toml") | own
            return cls({model: Price(row["input"], row["output"]) for model, row in rows.items()})
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise InputError(
                f"{path} is not a price table ({error}); expected a table for each model: "
                '["model-name"] with input and output in dollars per million tokens'
            ) from error

    def price(self, model: str) -> Price | None:
        """Return the price of a model, or None if the table has none."""
        return self._prices.get(model) or self._prices.get(_VERSION.sub("", model))

    def cost(self, model: str, input_tokens: int, output_tokens: int) -> float | None:
        """Compute the dollars for one call; None for a model without a price."""
        price = self.price(model)
        return None if price is None else call_cost(input_tokens, output_tokens, price)
