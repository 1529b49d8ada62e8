"""The BM25 matrices of a saved index are loaded, not computed again."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from precise_rag.index import (
    DocumentIndex,
    HybridIndex,
)
from precise_rag.index.arrays.postings import Postings
from precise_rag.index.rows import segments
from precise_rag.testing import HashEncoder
from precise_rag.types import Document

OLD = [Document(f"old{i}", f"The old cat number {i} sleeps. It purrs.") for i in range(20)]
NEW = [Document(f"new{i}", f"A new dog number {i} barks. It runs.") for i in range(30)]


@pytest.mark.parametrize("kind", [HybridIndex])
def test_the_words_of_a_saved_index_are_not_weighed_again(
    kind: type[DocumentIndex], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = kind.build(OLD + NEW, HashEncoder())
    index.save(tmp_path / "index")
    monkeypatch.setattr(segments, "SMALL", 0)
    calls = []
    whole = Postings.of

    def counted(*arguments: Any) -> Postings:
        calls.append(arguments)
        return whole(*arguments)

    monkeypatch.setattr(Postings, "of", counted)
    loaded = kind.load(tmp_path / "index", HashEncoder())
    assert loaded.search("old cat sleeps", 9) == index.search("old cat sleeps", 9)
    loaded.delete(["old3"])
    loaded.search("old cat sleeps", 9)
    assert not calls
    rest = kind.build([d for d in OLD + NEW if d.id != "old3"], HashEncoder())
    found, expected = loaded.search("old cat sleeps", 9), rest.search("old cat sleeps", 9)
    assert [c.id for c in found] == [c.id for c in expected]
    np.testing.assert_allclose([c.score for c in found], [c.score for c in expected], rtol=1e-5)


@pytest.mark.parametrize("kind", [HybridIndex])
def test_words_go_with_the_last_document_that_has_them(kind: type[DocumentIndex], tmp_path: Path) -> None:
    index = kind.build(OLD + NEW, HashEncoder())
    index.search("old", 1)
    index.delete([document.id for document in OLD])
    index.save(tmp_path / "index")
    kind.build(NEW, HashEncoder()).save(tmp_path / "new")
    words, expected_words = (
        json.loads(next((tmp_path / name).glob("*/segment.json")).read_text())["vocabulary"]
        for name in ("index", "new")
    )
    assert "cat" not in words
    assert sorted(words) == sorted(expected_words)
    loaded = kind.load(tmp_path / "index", HashEncoder())
    for query in ("a new dog barks", "the old cat sleeps", "number 7"):
        for searched in (index, kind.build(NEW, HashEncoder())):
            found, expected = loaded.search(query, 9), searched.search(query, 9)
            assert [c.id for c in found] == [c.id for c in expected]
            np.testing.assert_allclose([c.score for c in found], [c.score for c in expected], rtol=1e-6)
    loaded.add(OLD)
    loaded.save(tmp_path / "index")
    again = kind.load(tmp_path / "index", HashEncoder())
    whole = kind.build(NEW + OLD, HashEncoder())
    found, expected = again.search("the old cat", 5), whole.search("the old cat", 5)
    assert [c.id for c in found] == [c.id for c in expected]


def test_an_index_without_documents_has_no_words(tmp_path: Path) -> None:
    index = HybridIndex.build(OLD, HashEncoder())
    index.delete([document.id for document in OLD])
    index.save(tmp_path / "index")
    loaded = HybridIndex.load(tmp_path / "index", HashEncoder())
    assert not loaded._rows.parts
    loaded.add(NEW)
    assert loaded.search("dog", 1)[0].score > 0
