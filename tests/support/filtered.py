"""Documents with all kinds of metadata, and random filters on them."""

import math
import random
from typing import Any

from hypothesis import strategies as st

from precise_rag.filters import AllOf, AnyOf, Condition, Field, Filter
from precise_rag.types import Document

FIELDS = ["a", "b.c", 'd"e', "f'g", "h\\i", "j k", "ü", "%", "[0]", "n_1", "text a", "number a", "🂡", '["a"]']
STRINGS = [
    *("", "a", "A", "ab", "b", "a'b", 'a"b', "a\\b", "a\\'b", "\\", "%", "_", "a%b", "a_b"),
    *("\n", "{}", "$id"),
    *("é", "日本", "a\u0301", "1", "true", "null", "🂡", "\ue000", "\ue001", "\ue002", "\uffff", "\ufffd"),
    *("\\u0000", "\\ufffd", "2024-01-31", "2024-02-01T00:00:00Z", "x" * 40, "x" * 40 + "y", "' OR 1=1 --"),
]
NUMBERS = [
    *(0, 1, -1, 3, 1.0, 1.5, -1.5, -0.0, 0.1, 1e300, -1e300, 10**300, 5e-324, 1e-7, 1e23, 10**23, 1e22),
    *(2**53 - 1, 2**53, 2**53 + 1, 2.0**53, -(2**53) - 1, 2**63, 2**64 + 1, 10**17, 10**17 + 1, 1.7e308),
]
VALUES = [*STRINGS, *NUMBERS, True, False]
ODD: list[Any] = [
    *(None, [], ["a"], ["a", 1], [1.0, True], [""], [2**53 + 1, 1e300], ["\\", "%", "\ue000"], {"x": 1}, {}),
    *([["a"]], [None], math.nan, math.inf, [math.nan, "a"], 10**400, "a\0b", ["a\0b", "b"], "\0"),
]
"""Values that no condition can have, beside lists."""


def filtered_documents(n: int = 150) -> list[Document]:
    """Documents of two tenants; some have forged names."""
    rng = random.Random(0)
    documents = []
    for number in range(n):
        names = {"a", *rng.sample(FIELDS, rng.randrange(5))} - ({"a"} if number % 4 == 0 else set())
        metadata = {name: rng.choice([*VALUES, *VALUES, *ODD, *ODD, *ODD]) for name in sorted(names)}
        if number % 5:
            metadata["tenant"] = ("acme", "other", ["acme"], "acme%")[min(number % 7, 3)]
        if number % 3 == 0:
            metadata |= {"$id": f"d{number + 1}", "$or": 1, "doc_id": "d1", "place": -1}
        documents.append(Document(f"d{number}{rng.choice(STRINGS)}", "The cat sleeps.", metadata))
    return documents


_texts = st.one_of(
    st.sampled_from([*STRINGS, "d1", "d10"]),
    st.text(st.characters(exclude_categories=["Cs"], min_codepoint=1)),
)
_numbers = st.one_of(
    st.sampled_from(NUMBERS), st.integers(), st.floats(allow_nan=False, allow_infinity=False)
)
_values = st.one_of(_texts, _numbers, st.booleans())
_names = st.one_of(st.sampled_from(FIELDS), st.sampled_from(["$id", "tenant", "a"]))
_few, _many = st.lists(_values, max_size=4), st.lists(st.sampled_from(VALUES), min_size=21, max_size=30)


def _condition(operators: list[str], values: st.SearchStrategy[Any]) -> st.SearchStrategy[Condition]:
    return st.builds(Condition, _names, st.sampled_from(operators), values, st.booleans())


_conditions = st.one_of(
    _condition(["$eq", "$contains"], _values),
    _condition(["$gt", "$gte", "$lt", "$lte"], _texts | _numbers),
    _condition(["$in"], st.one_of(_few, _many).map(tuple)),
    _condition(["$exists"], st.just(True)),
)


def _groups(depth: int) -> st.SearchStrategy[Filter]:
    below = _conditions if depth == 1 else st.one_of(_conditions, _groups(depth - 1), _groups(depth - 1))
    parts = st.lists(below, min_size=int(depth > 3), max_size=3).map(tuple)
    return st.one_of(st.builds(AllOf, parts), st.builds(AnyOf, parts))


random_filters = st.builds(lambda wanted, no: ~wanted if no else wanted, _groups(5), st.booleans())
"""Trees of five levels at most; a negation moves to the conditions."""
OF_TENANT = Field("tenant") == "acme"
