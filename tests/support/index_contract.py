"""Tests that every index must pass: of `IndexContract`, or of `SearchContract` for one without a folder."""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from precise_rag.errors import EmptyIndexError, IndexFormatError, InputError
from precise_rag.filters import as_filter
from precise_rag.index import load_index
from precise_rag.index.settings import check_opened
from precise_rag.testing.encoder import HashEncoder
from precise_rag.types import Candidate, Document
from support.documents import read_cases

_CATS = Document(
    "cats",
    "The cat sleeps on a warm mat. It purrs when it is fed.\n\nKittens play with wool. They sleep a lot.",
    {"shelf": 3, "tags": ["pet"]},
)
_BANKS = Document("banks", "The bank raised interest rates in March. Loans cost more now. Savers are glad.")
_RIVERS = Document("rivers", "A river bank is where land meets water. Otters sleep there.\n\nFloods move it.")
_BLANK = Document("blank", " \n\n ")
_DOCUMENTS = (_CATS, _BANKS, _RIVERS, _BLANK)
_SHELVED = (
    _CATS,
    replace(_BANKS, metadata={"shelf": 4.5, "tags": ["money", "news"], "title": "Rates rise", "open": True}),
    replace(_RIVERS, metadata={"shelf": 7, "title": "Rivers", "open": False}),
    replace(_BLANK, metadata={"shelf": 3}),
    Document("otters", "Otters sleep in water. A cat does not.", {"title": None, "tags": []}),
)
_FILTERS = [(wanted, set(found)) for wanted, found in read_cases("index.json", "filters")]
_QUERIES = ("Where does the cat sleep?", "What did the bank do to interest rates?", "otters and water")
_Found = dict[str, float]


def _found(index: Any, query: str, top_k: int = 100) -> _Found:
    return {candidate.id: candidate.score for candidate in index.search(query, top_k)}


def _all_found(index: Any) -> list[_Found]:
    """Search for each query. Returns the scores by candidate id."""
    return [_found(index, query) for query in _QUERIES]


def _same(left: _Found, right: _Found) -> bool:
    """Return whether ids are equal and scores nearly so: sums in another order differ by rounding."""
    return left == pytest.approx(right, rel=1e-4, abs=1e-4)


def _all_same(left: Sequence[_Found], right: Sequence[_Found]) -> bool:
    return all(_same(a, b) for a, b in zip(left, right, strict=True))


class SearchContract(ABC):
    """Base class for a pytest class that tests how an index searches and changes."""

    @abstractmethod
    def build(self, documents: Iterable[Document], encoder: HashEncoder) -> Any:
        """Build the index to test, with default settings and this encoder."""

    def built(self, documents: Sequence[Document] = _DOCUMENTS) -> Any:
        """Build the index to test with a new encoder."""
        return self.build(documents, HashEncoder())

    def test_candidates_are_what_their_spans_say(self) -> None:
        """A candidate has the text of its span, metadata and a token count; the best one answers."""
        by_id = {document.id: document for document in _DOCUMENTS}
        index = self.built()
        for query, best in zip(_QUERIES, ("cats", "banks", "rivers"), strict=True):
            candidates = index.search(query, 4)
            assert candidates[0].doc_id == best
            for candidate in candidates:
                document = by_id[candidate.doc_id]
                assert candidate.text == document.text[candidate.start : candidate.end]
                assert candidate.text == candidate.text.strip()
                assert candidate.metadata == document.metadata
                assert candidate.n_tokens is not None
                assert candidate.n_tokens >= 1
                assert candidate.score_scale == index.score_scale
                assert all(np.isfinite(score) for score in candidate.scores.values())
            scores = [candidate.score for candidate in candidates]
            assert scores == sorted(scores, reverse=True)
            assert len({candidate.id for candidate in candidates}) == len(candidates)

    def test_top_k_is_a_prefix_of_a_larger_one(self) -> None:
        """A smaller top_k returns the same best scores; a large top_k and any query are valid."""
        index = self.built()
        for query in (*_QUERIES, "zyzzyva", "", "?!"):
            everything = _found(index, query, 1000)
            assert len(everything) <= len(index)
            best = sorted(everything.values(), reverse=True)
            for top_k in range(1, len(everything) + 1):
                some = _found(index, query, top_k)
                assert list(some.values()) == pytest.approx(best[:top_k], rel=1e-4, abs=1e-4)
                assert _same(some, {i: everything[i] for i in some})
        with pytest.raises(InputError, match="top_k must be at least 1, got 0"):
            index.search("x", 0)

    def test_a_ready_query_vector_gives_the_same(self) -> None:
        """A query vector can be passed, and can have any length."""
        index = self.built()
        for query in _QUERIES:
            vector = 3 * HashEncoder().encode_queries([query])[0]
            scores = {c.id: c.score for c in index.search(query, 100, vector=vector)}
            assert _same(scores, _found(index, query))

    def test_a_filter_keeps_to_its_documents(self) -> None:
        """A search with a filter returns as many candidates as its documents have, and no others."""
        index = self.built(_SHELVED)
        for wanted, ids in _FILTERS:
            kept = [document for document in _SHELVED if document.id in ids]
            assert [document.id for document in kept] == [
                document.id for document in _SHELVED if as_filter(wanted).matches(document)
            ]
            alone = self.built(kept) if any(document.text.strip() for document in kept) else None
            for query in _QUERIES:
                matching = index.search(query, 100, filter=wanted)
                assert {candidate.doc_id for candidate in matching} <= ids
                expected = alone.search(query, 100) if alone else []
                assert {candidate.doc_id for candidate in matching} == {c.doc_id for c in expected}
                for top_k in (1, 2):
                    assert len(index.search(query, top_k, filter=wanted)) == min(top_k, len(matching))

    def test_what_is_written_into_metadata_changes_no_index(self) -> None:
        given = {"tenant": "me", "tags": ["wool"]}
        theirs = replace(_BANKS, metadata={"tenant": "them"})
        index = self.built([Document("cats", _CATS.text, given), theirs])
        found = index.search("cat", 2, filter={"tenant": "me"})
        for metadata in (given, index.document("cats").metadata, *(one.metadata for one in found)):
            metadata["tenant"] = "them"  # type: ignore[index]
            metadata["tags"].append("other")
        for tenant, ids in (("me", {"cats"}), ("them", {"banks"})):
            assert {one.doc_id for one in index.search("cat bank", 9, filter={"tenant": tenant})} == ids
        assert index.document("cats").metadata == {"tenant": "me", "tags": ["wool"]}

    def test_a_filter_on_an_unknown_field_finds_nothing_and_says_so_and_an_unknown_operator_raises(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        """A field that no document has is met by no document, with a warning; so is its negation."""
        index = self.built(_SHELVED)
        for wanted in ({"shelve": 3}, {"shelve": {"$ne": 3}}, {"$not": {"shelve": {"$gt": 3}}}):
            caplog.clear()
            assert index.search(_QUERIES[0], filter=wanted) == []
            assert "'shelve', which no document has" in caplog.text
        assert "shelf" in index.fields()
        with pytest.raises(InputError, match="unknown operator '\\$like'"):
            index.search("cat", filter={"shelf": {"$like": "3"}})

    def test_a_filter_sees_changes(self) -> None:
        """Documents that are added, described anew or deleted are found by their present metadata."""
        index = self.built(_SHELVED)
        query, wanted = _QUERIES[0], {"shelf": {"$in": [9]}}
        assert index.search(query, filter=wanted) == []
        index.add([replace(_CATS, metadata={"shelf": 9}), Document("new", "A cat sleeps.", {"shelf": 9})])
        assert {c.doc_id for c in index.search(query, 100, filter=wanted)} == {"cats", "new"}
        index.delete(["cats"])
        assert {c.doc_id for c in index.search(query, 100, filter=wanted)} == {"new"}

    def test_deleting_equals_never_having_added(self) -> None:
        """Each document can be deleted, wherever it is."""
        for gone in _DOCUMENTS:
            index = self.built()
            index.search("cat", 1)
            index.delete([gone.id])
            rest = [document for document in _DOCUMENTS if document != gone]
            assert set(index.document_ids) == {document.id for document in rest}
            assert _all_same(_all_found(index), _all_found(self.built(rest)))

    def test_a_changed_document_replaces_only_itself(self) -> None:
        """A document with a known id replaces the old one; no other document is encoded again."""
        encoder = HashEncoder()
        index = self.build(_DOCUMENTS, encoder)
        encoder.calls.clear()
        index.add([replace(_BANKS, text="The bank closed. Rivers are wet.")])
        assert not any(text in "".join((_CATS.text, _RIVERS.text)) for text in encoder.calls)
        changed = [_CATS, _RIVERS, _BLANK, replace(_BANKS, text="The bank closed. Rivers are wet.")]
        assert _all_same(_all_found(index), _all_found(self.built(changed)))

    def test_the_same_documents_again_change_nothing_and_cost_nothing(self) -> None:
        """Adding a known text encodes nothing; new metadata replaces the old."""
        encoder = HashEncoder()
        index = self.build(_DOCUMENTS, encoder)
        before = _all_found(index)
        encoder.calls.clear()
        index.add([_BLANK, _CATS])
        index.add([replace(_BANKS, metadata={"shelf": 9})])
        assert not encoder.calls
        assert _all_same(_all_found(index), before)
        assert index.search(_QUERIES[1], 1)[0].metadata == {"shelf": 9}

    def test_mistakes_change_nothing(self) -> None:
        """Adding a duplicate id and deleting an unknown id raise, and change nothing."""
        index = self.built()
        before = _all_found(index)
        with pytest.raises(InputError, match="two documents have the id 'new'"):
            index.add([Document("new", "A cat."), Document("new", "A dog.")])
        with pytest.raises(InputError, match="no document 'nobody'"):
            index.delete(["cats", "nobody"])
        assert _all_same(_all_found(index), before)

    def test_searching_an_empty_index_raises(self) -> None:
        """Searching an index without any text raises EmptyIndexError, until a document gets a text."""
        for index in (self.built([]), self.built([_BLANK])):
            with pytest.raises(EmptyIndexError, match="add documents first"):
                index.search("cat")
            index.add([replace(_BLANK, text="Zebras graze.")])
            assert index.search("zebras graze", 1)[0].doc_id == "blank"
        index = self.built([_CATS])
        index.delete(["cats"])
        with pytest.raises(EmptyIndexError):
            index.search("cat")
        index.add([_BANKS])
        assert index.search(_QUERIES[1], 1)[0].doc_id == "banks"

    def test_readers_see_the_index_before_or_after_a_change(self) -> None:
        """A search while another thread changes the index sees the state before or after a change."""
        index = self.built()
        states = [_all_found(index), _all_found(self.built([_CATS, _BANKS, _BLANK]))]

        def read(_: int) -> bool:
            return all(
                any(_same(now, state[i]) for state in states) for i, now in enumerate(_all_found(index))
            )

        def write(_: int) -> None:
            index.delete(["rivers"])
            index.add([_RIVERS])

        with ThreadPoolExecutor(3) as pool:
            writing = [pool.submit(write, 0)]
            reading = [pool.submit(read, i) for i in range(8)]
            writing[0].result()
            assert all(reader.result() for reader in reading)


class IndexContract(SearchContract):
    """Base class for a pytest class that tests one kind of index that is saved in a folder."""

    def test_an_index_can_be_saved_and_loaded(self, tmp_path: Path) -> None:
        """A loaded index, also an empty one, finds the same, changes, and is saved to the same folder."""
        path = tmp_path / "index"
        self.built([]).save(path)
        index = load_index(path, HashEncoder())
        index.add([_CATS, _BANKS, _BLANK])
        index.save(path)
        loaded = load_index(path, index.encoder)
        assert type(loaded) is type(index)
        for query in _QUERIES:
            _same_candidates(loaded.search(query, 100), index.search(query, 100))
        assert loaded.document_ids == index.document_ids
        loaded.add([_RIVERS])
        loaded.delete(["banks"])
        for compact in (lambda: None, loaded.compact):
            compact()
            loaded.save(path)
            again = type(index).load(path, index.encoder)
            assert _all_same(_all_found(again), _all_found(self.built([_CATS, _BLANK, _RIVERS])))
        assert len(list(path.glob("data-*"))) == 1

    def test_a_save_writes_what_changed(self, tmp_path: Path) -> None:
        """A second save to a folder keeps the files of segments that have not changed."""
        path = tmp_path / "index"
        index = self.built()
        index.save(path)
        written = {file: file.stat().st_mtime_ns for file in path.glob("data-*")}
        index.save(path)
        index.delete(["blank"])
        index.save(path)
        left = {file: file.stat().st_mtime_ns for file in path.glob("data-*")}
        assert left.items() <= written.items() or len(left) <= len(written)
        assert _all_same(_all_found(type(index).load(path, index.encoder)), _all_found(index))

    def test_an_unreadable_index_raises(self, tmp_path: Path) -> None:
        """A missing index, one of another encoder, version or format, and a changed manifest are refused."""
        path = tmp_path / "index"
        index = self.built()
        with pytest.raises(IndexFormatError, match="holds no index"):
            type(index).load(path, index.encoder)
        index.save(path)
        with pytest.raises(InputError, match="identifier must be a str"):
            index.document([])
        with pytest.raises(IndexFormatError, match="was built with encoder"):
            type(index).load(path, HashEncoder(17))
        made = {"encoder": {"name": "old@" + 16 * "a"}, "settings": {}}
        check_opened(path, made, SimpleNamespace(name="new@" + 16 * "a"), {}, set())  # type: ignore[arg-type]
        manifest = json.loads((path / "manifest.json").read_text())
        for change, message in (
            ({"version": 99}, "has index format 99.*delete it and build it again"),
            ({"format": "other"}, "is not the manifest"),
            ({"shards": [{"file": "data-missing"}]}, "is damaged"),
        ):
            (path / "manifest.json").write_text(json.dumps(manifest | change))
            with pytest.raises(IndexFormatError, match=message):
                type(index).load(path, index.encoder)


def _same_candidates(left: Sequence[Candidate], right: Sequence[Candidate]) -> None:
    expected = {candidate.id: candidate for candidate in right}
    assert len(left) == len(right) == len(expected)
    for a in left:
        b = expected[a.id]
        assert (a.text, a.metadata, a.passage, a.n_tokens) == (b.text, b.metadata, b.passage, b.n_tokens)
        assert a.score == pytest.approx(b.score, rel=1e-5, abs=1e-6)
        assert dict(a.scores) == pytest.approx(dict(b.scores), rel=1e-5, abs=1e-6)
