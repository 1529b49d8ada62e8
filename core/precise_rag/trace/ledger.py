"""The cost of many questions."""

from collections.abc import Iterable, Mapping
from functools import reduce
from operator import add
from typing import Any, NamedTuple

from precise_rag._processes import ProcessLock
from precise_rag.errors import InputError
from precise_rag.trace.prices import cost_efficiency
from precise_rag.trace.record import Trace


class Bill(NamedTuple):
    """Calls, tokens and cost of model calls. cost: dollars; None if one of the calls has no price."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = 0.0

    def plus(self, other: "Bill") -> "Bill":
        """Return the sum of both bills."""
        cost = None if self.cost is None or other.cost is None else self.cost + other.cost
        return Bill._make([*map(add, self[:3], other[:3]), cost])


class Ledger:
    """The bills of many questions, summed by model and by role.

    A ledger keeps no texts, and its size does not grow with the number of questions. `add` may be called
    from several threads.
    """

    def __init__(self) -> None:
        self.questions = 0
        self._bills: dict[tuple[str, str], Bill] = {}
        self._lock = ProcessLock()

    def add(self, source: Any) -> None:
        """Add the calls of one answered question.

        source: a Trace, an Answer, or a record of `Trace.to_dict`. Raises InputError for anything else.
        """
        trace = getattr(source, "trace", source)
        try:
            calls = (trace.to_dict() if isinstance(trace, Trace) else trace)["calls"]
            bills = [((call["model"], call["role"]), _bill(call)) for call in calls]
        except (KeyError, TypeError) as error:
            raise InputError(
                "a ledger takes a Trace, an Answer, or a record of Trace.to_dict, got "
                f"{type(source).__name__} ({type(error).__name__}: {error})"
            ) from error
        with self._lock:
            self.questions += 1
            for key, bill in bills:
                self._bills[key] = self._bills.get(key, Bill()).plus(bill)

    @property
    def total(self) -> Bill:
        """Bill of all calls."""
        return _sum(self._bills.values())

    @property
    def by_model(self) -> Mapping[str, Bill]:
        """Bill of each model."""
        return self._by(0)

    @property
    def by_role(self) -> Mapping[str, Bill]:
        """Bill of each role, such as "answer" and "judge"."""
        return self._by(1)

    def _by(self, place: int) -> dict[str, Bill]:
        names = {key[place] for key in self._bills}
        return {name: _sum(bill for key, bill in self._bills.items() if key[place] == name) for name in names}

    @property
    def cost_per_question(self) -> float | None:
        """Mean dollars per question; None if a call has no price. Raises InputError for an empty ledger."""
        if not self.questions:
            raise InputError("the ledger is empty; add a trace first")
        cost = self.total.cost
        return None if cost is None else cost / self.questions

    def cost_efficiency(self, quality: float) -> float | None:
        """Return quality per dollar (SAGE, eq. 2), or None if a call has no price."""
        cost = self.cost_per_question
        return None if cost is None else cost_efficiency(quality, cost)

    def to_dict(self) -> dict[str, Any]:
        """Return the number of questions and all bills as plain values."""
        return {
            "questions": self.questions,
            "total": self.total._asdict(),
            "by_model": {name: bill._asdict() for name, bill in self.by_model.items()},
            "by_role": {role: bill._asdict() for role, bill in self.by_role.items()},
        }


def _bill(call: Mapping[str, Any]) -> Bill:
    used = call["input_tokens"], call["output_tokens"]
    return Bill(1, *used, call["cost"] if any(used) else 0.0)


def _sum(bills: Iterable[Bill]) -> Bill:
    return reduce(Bill.plus, bills, Bill())
