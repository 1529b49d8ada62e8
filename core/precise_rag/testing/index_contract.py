"""What every index must do, as tests to inherit. Needs pytest.

class TestMyIndex(IndexContract):
    def build(self, documents, encoder):
        return MyIndex.build(documents, encoder)
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from precise_rag.errors import EmptyIndexError, IndexFormatError, InputError
from precise_rag.index import DocumentIndex, load_index
from precise_rag.testing.encoder import HashEncoder
from precise_rag.types import Candidate, Document

CATS = Document(
    "cats",
    "The cat sleeps on a warm mat. It purrs when it is fed.\n\nKittens play with wool. They sleep a lot.",
    {"shelf": 3, "tags": ["pet"]},
)
BANKS = Document("banks", "The bank raised interest rates in March. Loans cost more now. Savers are glad.")
RIVERS = Document("rivers", "A river bank is where land meets water. Otters sleep there.\n\nFloods move it.")
BLANK = Document("blank", " \n\n ")
DOCUMENTS = (CATS, BANKS, RIVERS, BLANK)
QUERIES = ("Where does the cat sleep?", "What did the bank do to interest rates?", "otters and water")

Found = list[tuple[str, float]]


def found(index: DocumentIndex, query: str, top_k: int = 4) -> Found:
    """Ids and scores, rounded to what float32 sums in another order agree on."""
    return [(c.id, round(c.score, 4)) for c in index.search(query, top_k)]


def all_found(index: DocumentIndex) -> list[Found]:
    """What each of the queries finds, sorted so that equal scores may stand in any order."""
    return [sorted(found(index, query, 100), key=lambda f: (-f[1], f[0])) for query in QUERIES]


class IndexContract(ABC):
    """Inherit, say how to build, and pytest does the rest."""

    @abstractmethod
    def build(self, documents: Iterable[Document], encoder: HashEncoder) -> DocumentIndex:
        """The index under test."""

    def built(self, documents: Sequence[Document] = DOCUMENTS) -> DocumentIndex:
        """The index with an encoder of its own."""
        return self.build(documents, HashEncoder())

    def test_candidates_are_what_their_spans_say(self) -> None:
        """Texts, tokens, metadata and order of what a search returns."""
        by_id = {document.id: document for document in DOCUMENTS}
        index = self.built()
        for query in QUERIES:
            candidates = index.search(query, 4)
            assert candidates
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

    def test_the_best_candidate_answers_the_query(self) -> None:
        """Meaning survives: each query finds its document first."""
        index = self.built()
        best = [index.search(query, 1)[0].doc_id for query in QUERIES]
        assert best == ["cats", "banks", "rivers"]

    def test_top_k_is_a_prefix_of_a_larger_one(self) -> None:
        """And a larger one than the index holds is no error."""
        index = self.built()
        for query in QUERIES:
            everything = found(index, query, 1000)
            assert len(everything) <= len(index)
            for top_k in range(1, len(everything) + 1):
                some = found(index, query, top_k)
                assert [score for _, score in some] == [score for _, score in everything[:top_k]]
                assert set(some) <= set(everything)
        with pytest.raises(InputError, match="top_k is 0"):
            index.search("x", 0)

    def test_a_ready_query_vector_gives_the_same(self) -> None:
        """Of any length: only its direction counts."""
        index = self.built()
        for query in QUERIES:
            vector = 3 * HashEncoder().encode_queries([query])[0]
            expected = found(index, query)
            assert [(c.id, round(c.score, 4)) for c in index.search(query, 4, vector=vector)] == expected

    def test_words_that_occur_nowhere_are_no_error(self) -> None:
        """Nor are an empty query and one of punctuation."""
        index = self.built()
        for query in ("zyzzyva", "", "?!"):
            assert len(index.search(query, 3)) <= 3

    def test_order_of_documents_does_not_matter(self) -> None:
        """The same documents in another order score the same."""
        assert all_found(self.built(DOCUMENTS[::-1])) == all_found(self.built())

    def test_adding_equals_building_with_all(self) -> None:
        """One by one, and after a search."""
        index = self.built([CATS])
        index.search("cat", 1)
        for document in (BANKS, RIVERS, BLANK):
            index.add([document])
        assert all_found(index) == all_found(self.built())
        assert index.document_ids == ("cats", "banks", "rivers", "blank")

    def test_deleting_equals_never_having_added(self) -> None:
        """From the front, the middle and the end."""
        for gone in DOCUMENTS:
            index = self.built()
            index.search("cat", 1)
            index.delete([gone.id])
            rest = [document for document in DOCUMENTS if document != gone]
            assert index.document_ids == tuple(document.id for document in rest)
            assert all_found(index) == all_found(self.built(rest))

    def test_a_changed_document_replaces_only_itself(self) -> None:
        """And nothing else is encoded again."""
        encoder = HashEncoder()
        index = self.build(DOCUMENTS, encoder)
        encoder.calls.clear()
        index.add([replace(BANKS, text="The bank closed. Rivers are wet.")])
        assert not any(text in "".join((CATS.text, RIVERS.text)) for text in encoder.calls)
        changed = [CATS, RIVERS, BLANK, replace(BANKS, text="The bank closed. Rivers are wet.")]
        assert all_found(index) == all_found(self.built(changed))

    def test_the_same_documents_again_change_nothing_and_cost_nothing(self) -> None:
        """Other metadata for the same text is taken over without encoding."""
        encoder = HashEncoder()
        index = self.build(DOCUMENTS, encoder)
        before = all_found(index)
        encoder.calls.clear()
        index.add([BLANK, CATS])
        index.add([replace(BANKS, metadata={"shelf": 9})])
        assert not encoder.calls
        assert all_found(index) == before
        assert index.search(QUERIES[1], 1)[0].metadata == {"shelf": 9}

    def test_mistakes_change_nothing(self) -> None:
        """An id given twice, or one to delete that is unknown."""
        index = self.built()
        before = all_found(index)
        with pytest.raises(InputError, match="two documents have the id 'new'"):
            index.add([Document("new", "A cat."), Document("new", "A dog.")])
        with pytest.raises(InputError, match="no document 'nobody'"):
            index.delete(["cats", "nobody"])
        assert all_found(index) == before

    def test_documents_without_text_are_kept_and_named(self) -> None:
        """They can be replaced by one with text."""
        index = self.built()
        assert list(index.empty_document_ids) == ["blank"]
        index.add([replace(BLANK, text="Zebras graze.")])
        assert list(index.empty_document_ids) == []
        assert index.search("zebras graze", 1)[0].doc_id == "blank"

    def test_a_search_of_nothing_says_so(self) -> None:
        """No documents, documents without text, and all deleted."""
        for index in (self.built([]), self.built([BLANK])):
            with pytest.raises(EmptyIndexError, match="add documents first"):
                index.search("cat")
        index = self.built([CATS])
        index.delete(["cats"])
        with pytest.raises(EmptyIndexError):
            index.search("cat")
        index.add([BANKS])
        assert index.search(QUERIES[1], 1)[0].doc_id == "banks"

    def test_a_saved_index_comes_back_whole(self, tmp_path: Path) -> None:
        """Values, metadata and documents; and it can grow and be saved again over itself."""
        path = tmp_path / "index"
        index = self.built([CATS, BANKS, BLANK])
        index.save(path)
        loaded = type(index).load(path, index.encoder)
        for query in QUERIES:
            _same(loaded.search(query, 5), index.search(query, 5))
        assert loaded.document_ids == index.document_ids
        loaded.add([RIVERS])
        loaded.delete(["banks"])
        loaded.save(path)
        again = load_index(path, index.encoder)
        assert type(again) is type(index)
        assert all_found(again) == all_found(self.built([CATS, BLANK, RIVERS]))
        assert len(list(path.iterdir())) == 2

    def test_an_index_without_documents_can_be_saved(self, tmp_path: Path) -> None:
        """And filled after loading."""
        index = self.built([])
        index.save(tmp_path / "index")
        loaded = load_index(tmp_path / "index", index.encoder)
        loaded.add(DOCUMENTS)
        assert all_found(loaded) == all_found(self.built())

    def test_a_save_that_fails_leaves_the_old_index(self, tmp_path: Path) -> None:
        """Metadata that is no JSON; and a folder that holds something else is not touched."""
        path = tmp_path / "index"
        index = self.built([CATS])
        index.save(path)
        index.add([Document("odd", "A cat.", {"x": object()})])
        with pytest.raises(InputError, match="'odd': metadata cannot be saved as JSON"):
            index.save(path)
        assert load_index(path, index.encoder).document_ids == ("cats",)
        assert len(list(path.iterdir())) == 2
        index.delete(["odd"])
        (tmp_path / "notes.txt").write_text("mine")
        with pytest.raises(InputError, match="holds other files"):
            index.save(tmp_path)

    def test_what_cannot_be_read_says_why(self, tmp_path: Path) -> None:
        """Nothing there, another kind, encoder or version, and damaged files."""
        path = tmp_path / "index"
        index = self.built()
        with pytest.raises(IndexFormatError, match="holds no index"):
            load_index(path, index.encoder)
        index.save(path)
        with pytest.raises(IndexFormatError, match="was built with encoder"):
            load_index(path, HashEncoder(17))
        manifest = json.loads((path / "manifest.json").read_text())
        for change, message in (
            ({"version": 99}, "has index format 99"),
            ({"kind": "crystal"}, "'crystal' index"),
            ({"format": "other"}, "no manifest"),
            ({"data": "data-missing"}, "damaged"),
        ):
            (path / "manifest.json").write_text(json.dumps(manifest | change))
            with pytest.raises(IndexFormatError, match=message):
                load_index(path, index.encoder)
        (path / "manifest.json").write_text(json.dumps(manifest))
        spans = path / manifest["data"] / "spans.npy"
        spans.write_bytes(spans.read_bytes()[:20])
        with pytest.raises(IndexFormatError, match="damaged"):
            load_index(path, index.encoder)

    def test_readers_see_the_index_before_or_after_a_change(self) -> None:
        """Searches in threads while documents come and go."""
        index = self.built()
        states = [all_found(index), all_found(self.built([CATS, BANKS, BLANK]))]
        allowed = [{tuple(state[i]) for state in states} for i in range(len(QUERIES))]

        def read(_: int) -> bool:
            return all(tuple(f) in a for f, a in zip(all_found(index), allowed, strict=True))

        def write(_: int) -> None:
            index.delete(["rivers"])
            index.add([RIVERS])

        with ThreadPoolExecutor(3) as pool:
            writing = [pool.submit(write, 0)]
            reading = [pool.submit(read, i) for i in range(8)]
            writing[0].result()
            assert all(reader.result() for reader in reading)


def _same(left: Sequence[Candidate], right: Sequence[Candidate]) -> None:
    assert [(c.id, c.text, c.metadata, c.passage, c.n_tokens) for c in left] == [
        (c.id, c.text, c.metadata, c.passage, c.n_tokens) for c in right
    ]
    np.testing.assert_allclose([c.score for c in left], [c.score for c in right], rtol=1e-6)
    for a, b in zip(left, right, strict=True):
        assert dict(a.scores) == pytest.approx(dict(b.scores))
