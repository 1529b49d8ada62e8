from .prices import Price as Price
from .prices import PriceTable as PriceTable
from .prices import call_cost as call_cost
from .record import CallRecord as CallRecord
from .record import Record as Record
from .record import RoundRecord as RoundRecord
from .record import StageRecord as StageRecord
from .record import Trace as Trace
