"""The explain record of one question, and the bill over many."""

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
