"""A database keeps the contract, finds what an index in a folder finds, and means the same by a filter."""

import json
import math
import re
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from precise_rag.errors import IndexFormatError, InputError
from precise_rag.filters import Condition, Field, Filter
from precise_rag.index import DatabaseIndex, HybridIndex, load_index
from precise_rag.index.bm25 import BM25Settings
from precise_rag.index.databases import is_database
from precise_rag.index.databases.counted import HEAD_BYTES, CountedRows, bm25, packed, unpacked, usual
from precise_rag.testing import HashEncoder
from precise_rag.types import Document
from precise_rag.vectors import unit_rows
from support.filtered import NUMBERS, OF_TENANT, filtered_documents, random_filters
from support.index_contract import SearchContract

STORY = Document("story", "A cat sits.  A cat runs. It rained.\n\nThe sun rose. A cat sleeps.")


class TestDatabaseIndex(SearchContract):
    @pytest.fixture(autouse=True)
    def _database(self, new_location: Callable[[], str]) -> None:
        self.new_location = new_location

    def build(self, documents: Iterable[Document], encoder: HashEncoder) -> DatabaseIndex:
        return DatabaseIndex.build(documents, encoder, location=self.new_location(), precision="float32")


@pytest.mark.parametrize("settings", [{}, {"headings": False, "surroundings": None, "k1": 0.0}])
def test_scores_headings_and_neighbours_are_those_of_hybrid_index(
    settings: dict[str, Any], location: str
) -> None:
    """So vectors and words count alike in both, and titles and headings.

    Which words are in passages is estimated, but passages of one sentence have those of the sentence.
    """
    documents = [
        Document(
            "a", "# Pets\n\nThe cat sleeps on a mat. The dog barks.\n\n## Food\n\nIt eats fish. It drinks."
        ),
        Document(
            "b", "Banks raise rates. Savers are glad. Cats sleep, and a cat in a bank.", {"title": "Money"}
        ),
        Document("c", "".join(f"The owl number{i} sleeps. " for i in range(20)) + "\n\nEnd.", {"title": 7}),
    ]
    encoder = HashEncoder()
    options = {"passages": "sentences", **settings}
    index = DatabaseIndex.build(documents, encoder, location=location, precision="float32", **options)
    in_memory = HybridIndex.build(documents, encoder, **options)
    for query in ("Where does the cat sleep on a mat?", "food for pets", "money", "number3 number5 number12"):
        ours = {c.id: c for c in index.search(query, 100, returns="sentence")}
        theirs = {c.id: c for c in in_memory.search(query, 100, returns="sentence")}
        assert ours.keys() == theirs.keys()
        for identifier, expected in theirs.items():
            assert ours[identifier].above == expected.above
            for name in ("dense", "bm25") if index.settings.headings else ("dense", "bm25", "bm25_passage"):
                assert ours[identifier].scores[name] == pytest.approx(expected.scores[name], abs=1e-4)
    rare_code = "Which cat sleeps on the mat, and does number11 bark, drink or eat fish?"
    for each in (index, in_memory):
        assert "number11" in each.search(rare_code, 1, returns="sentence")[0].text
    found = [ours[i] for i in sorted(ours) if re.search(r"number(3|5|12) |eats", ours[i].text)]
    for reach in (1, 3, 100):
        for near, expected_near in zip(
            index.neighbours(found, reach), in_memory.neighbours(found, reach), strict=True
        ):
            assert near.text == expected_near.text
            assert [(c.id, c.passage, c.above) for c in near.sentences] == [
                (c.id, c.passage, c.above) for c in expected_near.sentences
            ]


def test_a_title_may_have_any_characters_and_a_new_one_is_read_anew(location: str) -> None:
    """The text and the title are told apart, whatever characters they hold."""
    index = DatabaseIndex.build([Document("a", "It sleeps. ")], HashEncoder(), location=location)
    before = index.search("felines", 1)[0].scores["dense"]
    index.add([Document("a", "It sleeps. felines")])
    index.add([Document("a", "It sleeps. ", {"title": "felines"})])
    assert index.document("a").text == "It sleeps. "
    assert index.search("felines", 1)[0].scores["dense"] > before + 0.1
    index.add([Document("a", "It sleeps. ", {"title": "Money\0, “and” more 水"})])
    (title,) = index.search("felines", 1)[0].above
    assert title.startswith("Money")
    assert title.endswith(", “and” more 水")
    for one in (index, HybridIndex(HashEncoder())):
        for metadata in ({"title": "Pump"}, {"header_path": "/Pump/"}):  # a title that becomes a heading
            one.add([Document("a", "# Oil\n\nTwo litres.", metadata)])
        assert {found.above for found in one.search("litres", returns="sentence")} <= {(), ("Oil",)}


async def test_it_takes_the_options_of_a_search(location: str) -> None:
    index = DatabaseIndex.build([STORY], HashEncoder(), location=location, passages="paragraphs")
    in_memory = HybridIndex.build([STORY], HashEncoder(), passages="paragraphs")
    for options in ({"returns": "sentence"}, {"returns": "passage"}):
        found, expected = (one.search("cat", 3, **options) for one in (index, in_memory))
        assert {(c.text, c.n_tokens) for c in found} == {(c.text, c.n_tokens) for c in expected}
    assert await index.asearch("cat sleeps", 3) == index.search("cat sleeps", 3)
    assert index.search("cat", 2, alpha=index.settings.alpha) == index.search("cat", 2)
    with pytest.raises(InputError, match=r"alpha is 0\.33.* in this collection, got 0\.9"):
        index.search("cat", alpha=0.9)


@pytest.mark.parametrize("dimension", [64, 60], ids=["whole bytes", "others"])
def test_an_approximate_index_finds_what_an_exact_search_does(
    dimension: int, location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("precise_rag.index.databases.engine._INDEXED_FROM", 1)
    documents = [Document(f"d{i}", f"Cat number {i} sleeps. It dreams of fish {i}.") for i in range(300)]
    index = DatabaseIndex.build(documents, HashEncoder(dimension), location=location)
    queries = [f"Which cat dreams of fish {i}?" for i in range(0, 300, 50)]
    exact = [[c.id for c in index.search(query, 3, returns="sentence")] for query in queries]
    index.optimize()
    index.add([Document("new", "A dog barks at zebras.")])
    found = [[c.id for c in index.search(query, 3, returns="sentence")] for query in queries]
    same = [len(set(a) & set(b)) / len(a) for a, b in zip(exact, found, strict=True)]
    assert sum(same) / len(same) > 0.9
    assert index.search("zebras", 1)[0].doc_id == "new"


def test_documents_come_back_to_who_opens_the_location(location: str) -> None:
    """Also values that no filter can ask for."""
    odd = {"a": 10**400, "b": float("inf"), "c": [1, 10**400]}
    text = "  The cat sleeps.\n\n  It purrs. \n"
    given = [Document("a", text, {"year": 1, "tags": ["x"]}), Document("b", " ", odd)]
    DatabaseIndex.build(given, HashEncoder(), location=location)
    index = load_index(location, HashEncoder(), returns="sentence")
    assert isinstance(index, DatabaseIndex)
    assert index.document("a") == given[0]
    assert index.document("b") == Document("b", "", odd)
    assert len(index.search("cat", 5)) == 2
    with pytest.raises(InputError, match="no document 'c'"):
        index.document("c")


@pytest.mark.parametrize(
    ("bad", "named"),
    [
        (Document("\ud800", "text"), "its id"),
        (Document("bad", "half \ud800"), "its text"),
        (Document("bad", "no\0thing"), "its text.*NUL"),
        (Document("bad", "text", {"b": "whole", "a": "\ud800"}), "its metadata 'a'"),
        (Document("bad", "text", {"a": ["x", {"b\udfff": 1}]}), "its metadata 'a'"),
        (Document("bad", "text", {"a": 10**5000}), "metadata cannot be saved"),
        (Document("bad", "text", {"a": object()}), "metadata cannot be saved"),
    ],
    ids=["id", "text", "nul", "metadata", "key", "number", "object"],
)
def test_a_document_that_no_database_holds_is_named(bad: Document, named: str, location: str) -> None:
    """Before any document of the list is written."""
    index = DatabaseIndex.build([Document("good", "A cat.")], HashEncoder(), location=location)
    with pytest.raises(InputError, match=f"document {re.escape(repr(bad.id))}: .*({named})"):
        index.add([*(Document(f"d{i}", "A dog.") for i in range(300)), bad])
    with pytest.raises(InputError, match="ids"):
        index.delete(5)
    assert index.document_ids == ("good",)


@pytest.mark.parametrize("location", ["mongodb://host/db", "https://host/rows", "milvus:rows.db"])
def test_another_database_names_from_store(location: str) -> None:
    """A folder may have the name of a database, and no URL is taken for a folder."""
    with pytest.raises(InputError, match=r"is not a database: give postgresql://.*from_store"):
        DatabaseIndex(location, HashEncoder())
    with pytest.raises(InputError, match=r"is not a database: give postgresql://.*from_store"):
        load_index("mongodb://host/db")
    assert not is_database("postgres")
    assert not is_database("postgresql")


WRONG: list[dict[str, Any]] = [
    *({"alpha": value} for value in ("x", 7, None, 1e400)),
    *({"pool": value} for value in (0, 0.5, 10**400)),
    *({name: 10**30} for name in ("precision", "passages", "stop_words")),
    {"unknown": 1},
]


def test_settings_that_another_program_has_changed_are_one_error(postgres: str) -> None:
    psycopg = pytest.importorskip("psycopg")
    location = f"{postgres}&collection=set"
    DatabaseIndex.build([Document("a", "A cat.")], HashEncoder(16), location=location)
    with psycopg.connect(postgres, autocommit=True) as connection:
        (text,) = connection.execute("SELECT settings FROM set_settings").fetchone()
        made = json.loads(text)
        damaged = [
            *({**made, "settings": {**made["settings"], **change}} for change in WRONG),
            *({**made, "settings": value} for value in ([], None)),
            *({**made, "encoder": value} for value in (None, {"name": 3}, {"name": None})),
            *([], "x"),
        ]
        for settings in (*map(json.dumps, damaged), "", "{", "[" * 100_000):
            connection.execute("UPDATE set_settings SET settings = %s", [settings])
            with pytest.raises(IndexFormatError, match="collection=set: its settings cannot be read"):
                print(settings[:300], DatabaseIndex(location, HashEncoder(16)))
            with pytest.raises(IndexFormatError, match="settings"):
                load_index(location)


Row = tuple[dict[int, tuple[int, int, int]], list[int], list[int]]
"""Words with how often they are there at each scale; words of each text; sentences of each."""
_WORDS = st.dictionaries(st.integers(1, 2**29), st.tuples(*[st.integers(0, 255)] * 3), max_size=9)
_NUMBERS = st.lists(st.integers(0, 2**31 - 1), min_size=3, max_size=3)


def counted(*rows: Row) -> CountedRows:
    terms = [sorted(words) for words, _, _ in rows]
    counts = [words[term] for words, _, _ in rows for term in sorted(words)]
    return CountedRows(
        np.array([lengths for _, lengths, _ in rows]).reshape(-1, 3),
        np.array([sizes for _, _, sizes in rows]).reshape(-1, 3),
        np.array([len(of_row) for of_row in terms], dtype=np.int64),
        np.array([term for of_row in terms for term in of_row], dtype=np.int32),
        np.array(counts, dtype=np.int64).reshape(-1, 3),
    )


def heads(*rows: Row) -> list[bytes]:
    return [as_bytes[:HEAD_BYTES] for as_bytes in packed(counted(*rows))]


@given(st.lists(st.tuples(_WORDS, _NUMBERS, _NUMBERS), max_size=5))
def test_rows_are_read_as_they_were_written_but_a_word_counts_255_at_most(rows: list[Row]) -> None:
    many = counted(*rows, ({5: (1, 254, 300)}, [1, 300, 400], [1, 2, 3]))
    written = many._replace(counts=np.minimum(many.counts, 255))
    for ours, theirs in zip(unpacked(packed(many)), written, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_texts_count_once_in_what_is_usual() -> None:
    """A passage of three sentences and one of a single sentence; both are one text of surroundings."""
    long: list[Row] = [({}, [n, 12, 16], [1, 3, 4]) for n in (3, 4, 5)]
    lengths, sizes = usual(heads(*long, ({}, [4, 4, 16], [1, 1, 4])))
    assert lengths == pytest.approx([4, 8, 16])
    assert sizes == pytest.approx([1, 2, 4])


def test_bm25_of_each_scale() -> None:
    """Of 40 sentences 10 have the word; of 20 passages of two 20 * (1 - 0.75 ** 2) = 8.75 are taken to."""
    rows: list[Row] = [({5: (1, 2, 0), 9: (0, 300, 0)}, [4, 8, 0], [1, 2, 0]), ({}, [4, 8, 0], [1, 2, 0])]
    settings = BM25Settings(k1=1.5, b=0.75)
    found, _ = bm25(counted(*rows), np.array([5, 7]), np.array([10, 3]), 40, usual(heads(*rows)), settings)
    assert found[0] == pytest.approx([math.log1p(30.5 / 10.5) / (1 + 1.5), 0], rel=1e-6)
    assert found[1] == pytest.approx([math.log1p(11.75 / 9.25) * 2 / (2 + 1.5), 0], rel=1e-6)
    assert found[2] == pytest.approx([0, 0])
    none = np.zeros(0, dtype=np.int64)
    without_words, _ = bm25(counted(*rows), none, none, 40, usual(heads(*rows)), settings)
    assert [scores.tolist() for scores in without_words] == [[0, 0]] * 3


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

    @settings(max_examples=40, derandomize=True)
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
    encoder = HashEncoder(64)
    near = {d.text: directions[i % 8] + noise[i] for i, d in enumerate(documents)}
    rows = lambda texts, **_: unit_rows(np.stack([near.get(text, directions[0]) for text in texts]))  # noqa: E731
    monkeypatch.setattr(encoder, "encode", rows)
    index = DatabaseIndex(f"{postgres}&collection=far&{options}", encoder, pool=20)
    index.add(documents)
    index.optimize()
    found = index.search("zebra", 20, vector=directions[0], filter={"kind": "far"}, returns="sentence")
    assert len({candidate.doc_id for candidate in found}) == 20
    assert {candidate.metadata["kind"] for candidate in found} == {"far"}
