"""A database means the same by a filter as the filter itself does, and nothing else gets through it."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from precise_rag.filters import Condition, Field, Filter
from precise_rag.index import DatabaseIndex, HybridIndex
from precise_rag.testing import HashEncoder
from precise_rag.types import Document
from support.filtered import NUMBERS, OF_TENANT, filtered_documents, random_filters

Found = Callable[[Filter], set[str]]


@pytest.fixture(params=["folder", "postgres", "postgres, by its indexes"])
def found(request: pytest.FixtureRequest) -> Found:
    """Gives the ids of those `filtered_documents` that meet a filter, as each kind of index finds them."""
    if request.param == "folder":
        folder = HybridIndex.build(filtered_documents(), HashEncoder(16))
        return lambda wanted: {candidate.doc_id for candidate in folder.search("cat", 1_000, filter=wanted)}
    location = request.getfixturevalue("location")
    if "by its indexes" in request.param:
        location += "&options=-c%20enable_seqscan%3Doff"
    index = DatabaseIndex.build(filtered_documents(), HashEncoder(16), location=location)
    vector, terms, idf = np.eye(16, dtype=np.float32)[0], np.zeros(0, np.int64), np.zeros(0, np.float32)

    def ids(wanted: Filter) -> set[str]:
        with index.engine.view() as view:
            return set(view.pool(vector, terms, idf, 1_000, wanted).doc_ids)

    return ids


def test_random_filters_find_the_documents_that_meet_them_and_no_other_tenants(found: Found) -> None:
    documents = filtered_documents()

    @settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
    @given(random_filters)
    def check(wanted: Filter) -> None:
        for its in (wanted, OF_TENANT & wanted):
            expected = {document.id for document in documents if its.matches(document)}
            assert found(its) == expected

    check()


def test_numbers_and_signs_are_compared_exactly(location: str) -> None:
    """Also numbers that no float can tell apart, signs that are wildcards elsewhere, and long lists."""
    signs = ["%", "_", "\\", "\ue000", "\ue001", "\ue002", "\ue000\ue001", "*", "?", "'", '"', "\x1f", "\r"]
    fields = [*({"n": number} for number in NUMBERS), *({"a": f"x{sign}y"} for sign in signs)]
    fields += [{"n": value} for value in ("1", True, [1])]
    documents = [Document(f"d{i}", "The cat sleeps.", its) for i, its in enumerate(fields)]
    index = DatabaseIndex.build(documents, HashEncoder(16), location=location)
    asked: list[Filter] = [Field("a").contains(sign) for sign in signs]
    asked += [Field("n").is_in([1, 2, *range(1_000, 1_500), "x"])]
    for number in [2**53, 2**53 + 1, -(2**53) - 1, 10**17 + 1, 0.0, 5e-324, -1.5, 1e23]:
        asked += [Condition("n", sign, number) for sign in ("$eq", "$gt", "$gte", "$lt", "$lte")]
    for wanted in asked:
        expected = {document.id for document in documents if wanted.matches(document)}
        assert {c.doc_id for c in index.search("cat", 100, filter=wanted)} == expected, wanted


def test_the_deepest_and_the_longest_filters(location: str) -> None:
    index = DatabaseIndex.build([Document("a", "The cat.", {"x": 1})], HashEncoder(), location=location)
    for start in (Field("x") == 1, Field("x") == 2):
        deep: Filter = start
        for number in range(48):
            deep = deep & (Field("x") > 0) if number % 2 else deep | (Field("y") == number)
        assert len(index.search("cat", filter=deep)) == int(deep.matches(Document("a", "", {"x": 1})))
    assert len(index.search("cat", filter=Field("x").is_in(range(3_000)))) == 1
    assert index.search("cat", filter=Field("x").is_in(range(2, 3_000))) == []


def test_the_index_of_postgres_finds_what_meets_a_filter_far_from_the_question(
    postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The index gives up after the nearest rows, none of which meets the filter."""
    monkeypatch.setattr("precise_rag.index.databases.engine._INDEXED_FROM", 1)
    monkeypatch.setattr("precise_rag.index.databases.view._COMPARED", 10)
    rng, directions = np.random.default_rng(0), np.eye(64, dtype=np.float32)
    documents = [Document(f"d{i}", f"Number {i}.", {"kind": "far"} if i % 8 == 7 else {}) for i in range(900)]
    noise = 0.1 * rng.standard_normal((len(documents), 64)).astype(np.float32)
    options = "options=-c%20hnsw.max_scan_tuples%3D1%20-c%20enable_sort%3Doff"
    index = DatabaseIndex(f"{postgres}&collection=far&{options}", HashEncoder(64), pool=20)
    index.add(documents, vectors={d.id: directions[i % 8] + noise[i] for i, d in enumerate(documents)})
    index.optimize()
    found = index.search("zebra", 20, vector=directions[0], filter={"kind": "far"}, returns="sentence")
    assert len({candidate.doc_id for candidate in found}) == 20
    assert {candidate.metadata["kind"] for candidate in found} == {"far"}
