"""Rows of results as Markdown."""

from collections.abc import Mapping, Sequence
from typing import Any

from precise_rag.evaluation import Interval
from precise_rag.evaluation.report.tables import format_markdown


def table(rows: Sequence[Mapping[str, Any]], form: str = ",.1f") -> str:
    """The rows as a table, whose columns are their keys. form: of numbers that are not whole."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    return format_markdown(columns, [[cell(row.get(c, ""), form) for c in columns] for row in rows])


def cell(value: Any, form: str = ",.1f") -> str:
    """A value as text: an interval as a signed mean with its bounds, NaN as a dash."""
    if isinstance(value, Interval):
        return f"{value.mean:+{form}} ({value.low:+{form}} to {value.high:+{form}})"
    if isinstance(value, float):
        return "–" if value != value else f"{value:{form}}"
    return f"{value:,}" if isinstance(value, int) else str(value).replace("|", "\\|")


def percent(interval: Interval) -> Interval:
    """A share in percent."""
    return Interval(*(100 * float(value) for value in interval))
