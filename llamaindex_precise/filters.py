"""LlamaIndex's metadata filters as filters of the core."""

from collections.abc import Mapping
from typing import Any

from llama_index.core.vector_stores.types import (
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
)

from llamaindex_precise.sources import StoreSource
from precise_rag.errors import InputError
from precise_rag.filters import COMPARISONS, AllOf, AnyOf, Field, Filter, as_filter

MetadataFilterInput = MetadataFilters | MetadataFilter | Filter | Mapping[str, Any]
"""LlamaIndex's filters, or a filter of the core in any form; see `to_core_filter`."""
_COMPARISONS = {FilterOperator[name[1:].upper()]: name for name in COMPARISONS}
_COMPARISONS[FilterOperator.TEXT_MATCH] = "$contains"


def to_core_filter(filters: MetadataFilterInput) -> Filter:
    """Return LlamaIndex's filters as a filter of the core.

    filters: MetadataFilters, one MetadataFilter, or a filter of the core, which is returned as it is. The
        key "$id" is the id of the document or node. NOT asks that none of its filters is met. As in
        LlamaIndex, NE, NIN and NOT are met by documents without the key; `$ne` of the core is not.
    Raises InputError for `TEXT_MATCH_INSENSITIVE`, which the core does not have.
    """
    return _filter(filters, in_not=False)


def filter_for(index: Any, filters: Any) -> Any:
    """Return filters as what is searched takes them: for a store as they are, else as one of the core."""
    return filters if filters is None or isinstance(index, StoreSource) else to_core_filter(filters)


def _filter(filters: MetadataFilterInput, *, in_not: bool) -> Filter:
    """The filter. in_not: whether its opposite is asked for, which a missing key meets, too."""
    if isinstance(filters, MetadataFilters):
        is_not = filters.condition == FilterCondition.NOT
        try:
            parts = tuple(_filter(part, in_not=in_not or is_not) for part in filters.filters)
        except RecursionError:
            raise InputError("filter: it is nested too deeply") from None
        if filters.condition == FilterCondition.OR:
            return AnyOf(parts)
        return ~AnyOf(parts) if is_not else AllOf(parts)
    if not isinstance(filters, MetadataFilter):
        return as_filter(filters)
    key, operator, value = filters.key, filters.operator, filters.value
    is_there = Field(key).exists()
    if operator == FilterOperator.IS_EMPTY:
        return ~is_there
    if operator in (FilterOperator.ANY, FilterOperator.ALL):
        values = value if isinstance(value, list) else [value]
        parts = tuple(as_filter({key: {"$contains": item}}) for item in values)
        found: Filter = AnyOf(parts) if operator == FilterOperator.ANY else AllOf(parts)
    elif operator in _COMPARISONS:
        found = as_filter({key: {_COMPARISONS[operator]: value}})
    else:
        raise InputError(f"the filter on {key!r}: {operator.name} is not known; use TEXT_MATCH")
    if operator in (FilterOperator.NE, FilterOperator.NIN):
        return found | ~is_there
    return found & is_there if in_not else found
