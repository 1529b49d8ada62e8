"""The record of one question, and the cost of many."""

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
