"""The record of one question, and the cost of many.

record.py  what each stage, model call and feedback round did
ledger.py  the sums over many questions
prices.py  the cost of a call, from the price table in prices.toml
"""

from precise_rag.trace.ledger import Bill as Bill
from precise_rag.trace.ledger import Ledger as Ledger
from precise_rag.trace.prices import Price as Price
from precise_rag.trace.prices import PriceTable as PriceTable
from precise_rag.trace.prices import call_cost as call_cost
from precise_rag.trace.prices import cost_efficiency as cost_efficiency
from precise_rag.trace.record import CallRecord as CallRecord
from precise_rag.trace.record import OpenStage as OpenStage
from precise_rag.trace.record import Record as Record
from precise_rag.trace.record import RoundRecord as RoundRecord
from precise_rag.trace.record import StageRecord as StageRecord
from precise_rag.trace.record import Trace as Trace
