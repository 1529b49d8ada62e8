"""The explain record of one question."""

from precise_rag.trace.ledger import Bill as Bill
from precise_rag.trace.ledger import Ledger as Ledger
from precise_rag.trace.page import trace_page as trace_page
from precise_rag.trace.record import CallRecord as CallRecord
from precise_rag.trace.record import OpenStage as OpenStage
from precise_rag.trace.record import Record as Record
from precise_rag.trace.record import RoundRecord as RoundRecord
from precise_rag.trace.record import StageRecord as StageRecord
from precise_rag.trace.record import Trace as Trace
