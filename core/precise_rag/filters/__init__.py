"""Filters: conditions on the metadata and the id of documents, to which a search keeps."""

from precise_rag.filters.conditions import AllOf, AnyOf, Condition, Field, Filter
from precise_rag.filters.parsing import COMPARISONS, as_filter, parse_assignments
from precise_rag.filters.values import field_value

__all__ = [
    "COMPARISONS",
    "AllOf",
    "AnyOf",
    "Condition",
    "Field",
    "Filter",
    "as_filter",
    "field_value",
    "parse_assignments",
]
