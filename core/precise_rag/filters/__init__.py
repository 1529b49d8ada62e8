"""Filters: conditions on the metadata and the id of documents, to which a search keeps."""

from precise_rag.filters.conditions import DOCUMENT_ID as DOCUMENT_ID
from precise_rag.filters.conditions import AllOf as AllOf
from precise_rag.filters.conditions import AnyOf as AnyOf
from precise_rag.filters.conditions import Condition as Condition
from precise_rag.filters.conditions import Field as Field
from precise_rag.filters.conditions import Filter as Filter
from precise_rag.filters.reading import as_filter as as_filter
from precise_rag.filters.reading import parse_assignments as parse_assignments
from precise_rag.filters.values import Value as Value
from precise_rag.filters.values import field_value as field_value
