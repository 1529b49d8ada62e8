"""The record of one question, and the cost of many.

record.py  what each stage, model call and feedback round did
ledger.py  the sums over many questions
html.py    the page of one question
prices.py  the cost of a call, from the price table in prices.toml
"""

from precise_rag.trace.ledger import Bill, Ledger
from precise_rag.trace.prices import Price, PriceTable, call_cost, cost_efficiency
from precise_rag.trace.record import CallRecord, OpenStage, Record, RoundRecord, StageRecord, Trace

__all__ = [
    "Bill",
    "CallRecord",
    "Ledger",
    "OpenStage",
    "Price",
    "PriceTable",
    "Record",
    "RoundRecord",
    "StageRecord",
    "Trace",
    "call_cost",
    "cost_efficiency",
]
